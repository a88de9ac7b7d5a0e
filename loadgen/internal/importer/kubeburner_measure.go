package importer

import (
	"cmp"
	"fmt"
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// burnTransition is a transition that replaces a part of a kube-burner measurement. condition is the name of this part
// in thresholds. to is the state of a node at the end of the transition, or empty if the transition is predefined.
type burnTransition struct{ condition, name, to string }

var burnTransitions = map[string][]burnTransition{
	"podLatency": {
		{"PodScheduled", "pod-scheduled", ""}, {"Initialized", "pod-initialized", ""},
		{"ContainersReady", "pod-containers-ready", ""}, {"Ready", "pod-ready", ""},
	},
	"jobLatency":     {{"Complete", "job-complete", ""}},
	"pvcLatency":     {{"Bound", "pvc-bound", ""}},
	"serviceLatency": {{"", "service-endpoints", ""}},
	"nodeLatency": { // kube-burner measures nodes that are added during a job
		{"MemoryPressure", "node-memory-pressure", "condition=MemoryPressure=False"},
		{"DiskPressure", "node-disk-pressure", "condition=DiskPressure=False"},
		{"PIDPressure", "node-pidpressure", "condition=PIDPressure=False"}, {"Ready", "node-ready", "ready"},
	},
}

// measurement converts a measurement of a job or, if j is nil, of all jobs.
func (b *burner) measurement(f *fields, j *burnJob) {
	name := f.text("name", "")
	b.all.measurements = append(b.all.measurements, name)
	f.ignore("quantilesIndexer", "timeseriesIndexer")
	if name == "pprof" {
		if j == nil { // the phases of a job contain its own profiles
			b.profiles = append(b.profiles, b.pprof(b.item(), f))
		}
		return
	}
	item := b.item()
	transitions := burnTransitions[name]
	switch {
	case name == "serviceLatency":
		item.remark(nil, f.at("name"), "the measured latency ends when an EndpointSlice of the Service has a ready endpoint, not when real pods connect to it")
		f.ignore("svcTimeout")
	case transitions == nil:
		why := ""
		if name == "netpolLatency" {
			why = ": it measures connections between real pods"
		}
		b.lose("measurement", name)
		item.remark(nil, f.at("name"), "%s is not measured%s", name, why)
		f.ignore("thresholds", "svcTimeout")
	}
	for _, t := range transitions {
		b.transition(flow("name", t.name).add("resource", when(t.to != "", "nodes"), "to", t.to))
	}
	for _, t := range f.list("thresholds") {
		b.all.ask(true, t.at("").place())
		if transitions == nil {
			t.leave()
			continue
		}
		b.threshold(item, t, transitions, j)
	}
}

// transition adds a transition, unless one with the same name was added before.
func (d *draft) transition(m *mapping) {
	if !slices.ContainsFunc(d.transitions, func(t *mapping) bool { return phaseName(t) == phaseName(m) }) {
		d.transitions = append(d.transitions, m)
	}
}

// threshold adds a gate for a latency threshold.
func (b *burner) threshold(item *item, f *fields, transitions []burnTransition, j *burnJob) {
	condition, metric := f.text("conditionType", ""), f.text("metric", "")
	q, known := map[string]float64{"P99": 0.99, "P95": 0.95, "P50": 0.5, "Max": 1}[metric]
	at := slices.IndexFunc(transitions, func(t burnTransition) bool { return t.condition == condition && condition != "" })
	if !known || at < 0 {
		item.remark(nil, f.at(""), "no gate: there is no %s of %s", metric, condition)
		return
	}
	transition := transitions[at].name
	g := block("name", unique(transition+"-"+metric, b.gateSet), "objective", "transition-latency", "transition", transition,
		"quantile", when(q != 0.99, q), "max", f.duration("threshold", time.Second).String())
	if j != nil {
		var over []string
		for _, p := range b.phases {
			if name := phaseName(p); name == nameOf(j.name) || strings.HasPrefix(name, nameOf(j.name)+"-") {
				over = append(over, name)
			}
		}
		g.set("over", over)
	}
	b.gates = append(b.gates, g)
}

// endpoints reads the metrics endpoints. It converts the alert and metrics profiles that the endpoints and the options
// name.
func (b *burner) endpoints() {
	kinds := []string{"metrics", "alerts"}
	for _, f := range b.root.list("metricsEndpoints") {
		item := b.item()
		// A local indexer needs no conversion, because a run stores its data in its own directory.
		indexer := f.sub("indexer")
		indexer.ignore("metricsDirectory", "createTarball", "tarballName")
		if kind := indexer.text("type", ""); f.has("indexer") && kind != "local" {
			indexer.leave()
			item.remark(nil, f.at("indexer"), "nothing is indexed in %s: metrics and results are in the run's directory", cmp.Or(kind, "another system"))
		}
		if url := f.text("endpoint", ""); url != "" {
			item.remark(nil, f.at("endpoint"), "the run scrapes its components itself; to judge by this Prometheus: loadgen run --kubeconfig FILE --prometheus %s", url)
		}
		f.ignore("step", "skipTLSVerify", "token", "username", "password", "alias")
		for _, kind := range kinds {
			for _, file := range f.texts(kind) {
				b.profile(kind, f.at(kind), file)
			}
		}
	}
	for n, files := range [][]string{b.options.Metrics, b.options.Alerts} {
		for _, file := range files {
			b.item()
			whole, _ := filepath.Abs(file)
			b.profile(kinds[n], Remark{File: file}, cmp.Or(whole, file))
		}
	}
}

// profile converts the entries of a profile of alerts or metrics, unless an earlier call did so. `at` is the place in
// the configuration that names the file.
func (b *burner) profile(kind string, at Remark, file string) {
	if b.read[file] {
		return
	}
	b.read[file] = true
	name := file
	if !filepath.IsAbs(file) {
		name = filepath.Join(b.dir, file)
	}
	data, err := userfile.Read(name, userfile.Text)
	if err != nil {
		b.fail(at, "cannot read %s: %v (paths are relative to the configuration's directory)", file, err)
		return
	}
	root, err := b.parse(name, data, nil)
	switch {
	case err != nil:
		b.errs = append(b.errs, err)
	case root == nil:
	case root.Kind != yaml.SequenceNode:
		b.use(root, whole)
		b.item().remark(nil, Remark{File: name, Line: root.Line}, "the profile must be a list of %s", kind)
	default:
		b.use(root, opened)
		convert := map[string]func(*fields, *item){"metrics": b.metric, "alerts": b.alert}[kind]
		for i, n := range root.Content {
			convert(b.fieldsOf(name, n, fmt.Sprintf("[%d]", i)), b.item())
		}
	}
}

// alert adds a gate for an alert that makes kube-burner fail, and a comparison row for any other alert. In kube-burner,
// an alert fires if its expression returns a series at any time during a job (pkg/alerting/alert_manager.go).
func (b *burner) alert(f *fields, item *item) {
	text := f.text("expr", "")
	expr, why := b.promQL(text)
	severity, description := f.text("severity", "info"), f.text("description", "")
	judged := severity == "error" || severity == "critical"
	if !judged && severity != "info" && severity != "warning" {
		item.remark(nil, f.at("severity"), "kube-burner has no severity %q and treats it as info", severity)
	}
	b.all.ask(judged, text)
	base := unique("alert-"+metricsOf(expr), b.gateSet)
	count := fmt.Sprintf("(count(%s) or vector(0))", expr)
	whole := fmt.Sprintf("max_over_time(%s[$window:5s]) or %s", count, count)
	refused := b.forJobs(base, expr, whole, why, func(m *mapping) {
		if description != "" {
			addComment(m.key("name"), fmt.Sprintf("%s, %s: %s", path.Base(f.file), severity, description))
		}
		b.judge(judged, m.add("max", when(judged, "0"), "unit", when(!judged, "count")))
	})
	if refused != "" {
		item.remark(nil, f.at("expr"), "no gate: %s: %s", refused, text)
	}
}

// forJobs calls add with new gates or comparison rows. Their expression is `value`, which contains `expr`, the
// expression of the profile. If `expr` uses the elapsed time of a job, each job with phases gets a row, evaluated over
// its phases. Otherwise one row covers all phases. If `why` is set or b.refused refuses a row, forJobs stops and
// returns the reason.
func (b *burner) forJobs(name, expr, value, why string, add func(*mapping)) string {
	spans := []*part{{}}
	if strings.Contains(expr, "$window") {
		spans = slices.DeleteFunc(slices.Clone(b.parts), func(p *part) bool { return p.to == p.from })
	}
	for n, span := range spans {
		m := block("name", name, "expr", value)
		if n > 0 {
			m.set("name", unique(withSuffix(name, strings.TrimPrefix(span.name, "job ")), b.gateSet))
		}
		if why == "" {
			why = b.refused(m)
		}
		if why != "" {
			return why
		}
		add(m)
		b.over(m, span.from, span.to, true)
	}
	return ""
}

// over restricts a gate or a comparison row to a range of phases. The run evaluates these phases together, or each
// separately. If the range is empty, it evaluates all phases, each separately.
func (d *draft) over(row *mapping, from, to int, together bool) {
	if to > from && to-from < len(d.phases) {
		var over []string
		for _, p := range d.phases[from:to] {
			over = append(over, phaseName(p))
		}
		row.set("over", over)
	}
	row.add("together", together && to-from > 1)
}

// judge adds row to the gates if `judged` is set, and otherwise to the comparison table.
func (d *draft) judge(judged bool, row *mapping) {
	if judged {
		d.gates = append(d.gates, row)
	} else {
		d.compare = append(d.compare, row)
	}
}

// metric adds a comparison row for a metric of a profile.
func (b *burner) metric(f *fields, item *item) {
	name := f.text("metricName", "")
	expr, why := b.promQL(f.text("query", ""))
	b.all.ask(false, f.text("query", ""))
	instant := f.flag("instant", false)
	base := unique(name, b.gateSet)
	if instant && f.flag("captureStart", false) && why == "" {
		item.remark(nil, f.at("captureStart"), "the figure %s is the value at the end of a phase; the value at its start is only in the run's archive", name)
	}
	value := fmt.Sprintf("max(%s)", expr)
	if !instant {
		value = fmt.Sprintf("max_over_time(%s[$window:5s])", value)
	}
	if refused := b.forJobs(base, expr, value, why, func(m *mapping) { b.judge(false, m) }); refused != "" {
		item.remark(nil, f.at("query"), "no metric %s in the section compare of the scenario: %s", name, refused)
	}
	f.ignore("captureStart")
}

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

// profilesOf returns the pprof measurements that apply to a job: first the global ones, then the job's.
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

// at returns the action that takes the profile at the time `after`, counted from the start of the phase. A component
// takes only one CPU profile at a time, so an earlier one may delay this one. free has the time at which each
// component's latest CPU profile ends.
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
