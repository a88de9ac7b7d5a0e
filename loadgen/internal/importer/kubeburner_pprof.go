package importer

import (
	"maps"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// burnProfiles is a pprof measurement. It takes profiles of components at the start and the end of a job, and
// repeatedly during the job.
type burnProfiles struct {
	item     *item
	at       Remark
	all      []burnProfile
	interval time.Duration
}

type burnProfile struct {
	component, kind string
	lasts           time.Duration // duration of a CPU profile
}

func (b *burner) pprof(item *item, f *fields) *burnProfiles {
	p := &burnProfiles{item: item, at: f.at("name"), interval: f.duration("pprofInterval", 0)}
	f.ignore("pprofDirectory", "nodeAffinity", "thresholds")
	for _, t := range f.list("pprofTargets") {
		one, why := profileOf(t)
		t.ignore("name", "bearerToken", "certFile", "keyFile", "cert", "key", "unixSocketPath")
		switch {
		case why != "":
			item.remark(nil, t.at(""), "no profile %s: %s", t.text("name", ""), why)
		case !slices.Contains(p.all, one):
			p.all = append(p.all, one)
		}
	}
	return p
}

// profileOf returns the profile that a pprof target requests. why is the reason if a run cannot take this profile, and
// empty otherwise.
func profileOf(t *fields) (p burnProfile, why string) {
	at, err := url.Parse(t.text("url", ""))
	if err != nil {
		return p, "its url cannot be read"
	}
	words := slices.AppendSeq([]string{t.text("namespace", "")}, maps.Values(t.strings("labelSelector")))
	if !t.has("labelSelector") {
		return p, "simulated nodes have no kubelet or container runtime process"
	}
	all := []string{"kube-apiserver", "etcd", "kube-scheduler", "kube-controller-manager"}
	n := slices.IndexFunc(all, func(component string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.HasSuffix(w, component) })
	})
	if n < 0 {
		return p, "its pods are not a control plane component"
	}
	p.component = all[n]
	_, name := path.Split(strings.TrimSuffix(at.Path, "/"))
	p.kind = name
	switch {
	case name == "profile":
		p.kind, p.lasts = "cpu", 30*time.Second
		if n, err := strconv.Atoi(at.Query().Get("seconds")); err == nil && n > 0 {
			p.lasts = time.Duration(n) * time.Second
		}
	case name == "mutex" && p.component != "etcd", name == "block" && (p.component == "etcd" || p.component == "kube-apiserver"):
		return p, p.component + " is started here without a " + name + " profile"
	case !slices.Contains([]string{"heap", "goroutine", "allocs", "mutex", "block"}, name):
		return p, "there is no profile " + name
	}
	return p, ""
}

// maxProfiles is the maximum number of profiles of one kind per job.
const maxProfiles = 20

// profilesOf returns the pprof measurements that apply to a job: the global ones, then the ones of the job.
func (b *burner) profilesOf(j *burnJob) []*burnProfiles {
	sets := slices.Clone(b.profiles)
	for _, m := range j.list("measurements") {
		if m.text("name", "") == "pprof" {
			sets = append(sets, b.pprof(b.item(), m))
		}
	}
	return slices.DeleteFunc(sets, func(set *burnProfiles) bool { return len(set.all) == 0 })
}

// profilePhase adds a phase that takes profiles. kube-burner takes profiles before and after each job, so profilePhase
// is called before and after the job's phases.
func (b *burner) profilePhase(name string, sets []*burnProfiles) {
	var profiles []*mapping
	lasts := time.Duration(0)
	free := map[string]time.Duration{} // end of the latest CPU profile, by component
	for _, set := range sets {
		for _, p := range set.all {
			profiles = append(profiles, p.at(0, free))
			lasts = max(lasts, free[p.component])
		}
	}
	if len(profiles) > 0 {
		b.phase(name).add("for", length(lasts+time.Second), "profiles", profiles)
	}
}

// at returns the action that takes the profile at the time after, counted from the start of the phase. A component
// takes only one CPU profile at a time, so another one may delay it. free has the time at which each component's latest
// CPU profile ends.
func (p burnProfile) at(after time.Duration, free map[string]time.Duration) *mapping {
	if p.lasts > 0 {
		after = max(after, free[p.component])
		free[p.component] = after + p.lasts + time.Second
	}
	return flow("component", p.component, "kind", p.kind).add("after", when(after > 0, scenario.Duration(after).String()),
		"for", when(p.lasts > 0, scenario.Duration(p.lasts).String()))
}

// profileEach adds profiles at a regular interval to the phase in which a job begins to create objects.
func (b *burner) profileEach(j *burnJob, sets []*burnProfiles, phase *mapping) {
	var profiles []*mapping
	free := map[string]time.Duration{}
	for _, set := range sets {
		if set.interval <= 0 {
			continue
		}
		for n := 1; n < maxProfiles && time.Duration(n)*set.interval < j.takes; n++ {
			for _, p := range set.all {
				profiles = append(profiles, p.at(time.Duration(n)*set.interval, free))
			}
		}
		if b.first(set) {
			set.item.remark(phase.Node, set.at, "profiles are taken every %s while objects are created, and before and after a job, but not while it waits", scenario.Duration(set.interval))
		}
	}
	phase.add("profiles", profiles)
}
