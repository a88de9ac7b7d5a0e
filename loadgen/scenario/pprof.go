package scenario

import (
	"fmt"
	"maps"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Profile is a pprof profile of a component, taken in a phase.
type Profile struct {
	// Component: component to profile: a name such as "kube-apiserver-0", a kind such as "kube-apiserver" (each of its
	// processes), or "loadgen"
	Component string   `yaml:"component"`
	Kind      string   `yaml:"kind"`            // "cpu", "heap", "goroutine", "allocs", "mutex" or "block"
	After     Duration `yaml:"after,omitempty"` // time from the phase's start to the profile
	// For: how long to sample CPU time, in whole seconds, default 10s
	For Duration `yaml:"for,omitempty" zero:"10s"`
}

// The kinds of profile that need special handling.
const (
	CPUProfile   = "cpu"
	mutexProfile = "mutex"
	blockProfile = "block"
)

// OwnComponent is the component name of the load generator.
const OwnComponent = "loadgen"

const (
	defaultCPUProfile = 10 * time.Second
	// etcdProfiles is the flag that makes etcd serve profiles.
	etcdProfiles = "enable-pprof"
	// apiServerBlocks is the flag that makes API servers record block profiles.
	apiServerBlocks = "contention-profiling"
)

// PlacedProfile is a profile with its phase.
type PlacedProfile struct {
	*Profile
	Phase string
}

// Profiles lists the profiles of all phases.
func (s *Scenario) Profiles() []PlacedProfile {
	var all []PlacedProfile
	for i := range s.Phases {
		for j := range s.Phases[i].Profiles {
			all = append(all, PlacedProfile{&s.Phases[i].Profiles[j], s.Phases[i].Name})
		}
	}
	return all
}

// Of reports whether the profile applies to the given component.
func (p *Profile) Of(component string) bool {
	kind := control.ComponentKind(component)
	return p.Component == component || kind != "" && p.Component == kind
}

// defaultProfiles sets the defaults of profiles, and the flag that makes etcd serve profiles.
func (s *Scenario) defaultProfiles() {
	for _, p := range s.Profiles() {
		if p.Kind == CPUProfile {
			orDefault(&p.For, Duration(defaultCPUProfile))
		}
		flags := s.ControlPlane.Etcd.Flags
		if sel, ok := control.ParseSelector(p.Component); ok && sel.Kind == control.KindEtcd && flags[etcdProfiles] == "" {
			flags = maps.Clone(flags)
			if flags == nil {
				flags = control.Flags{}
			}
			flags[etcdProfiles] = "true"
			s.ControlPlane.Etcd.Flags = flags
		}
	}
}

func (v *validator) pprof(path string, phase *Phase) {
	for j := range phase.Profiles {
		p := &phase.Profiles[j]
		at := fmt.Sprintf("%s.profiles[%d]", path, j)
		if !v.oneOf(at+".kind", p.Kind, CPUProfile, "heap", "goroutine", "allocs", mutexProfile, blockProfile) {
			continue
		}
		v.profiled(at, p)
		v.onlyFor(at, p.Kind, []field{{"for", p.For != 0, CPUProfile}})
		if p.For.D()%time.Second != 0 {
			v.fail(at+".for", "whole seconds, for example 10s", "%s is not a whole number of seconds", p.For)
		}
		v.profileTimes(at, phase, p)
		for _, before := range phase.Profiles[:j] {
			overlap := p.After < before.After+before.For && before.After < p.After+p.For
			if p.Kind == CPUProfile && before.Kind == CPUProfile && overlap && (p.Of(before.Component) || before.Of(p.Component)) {
				v.fail(at, "start the second profile after the end of the first: after: "+(before.After+before.For+Duration(time.Second)).String(), "two CPU profiles of %s overlap", p.Component)
			}
		}
	}
}

// profiled checks that the component of the profile p exists and serves profiles of p.Kind, such as cpu.
func (v *validator) profiled(path string, p *Profile) {
	switch p.Component {
	case OwnComponent:
		return
	case "":
		v.fail(path+".component", "for example kube-apiserver, etcd-0 or "+OwnComponent, "is missing")
		return
	}
	before := len(v.errs)
	v.component(path+".component", p.Component)
	if len(v.errs) > before {
		return
	}
	s, _ := control.ParseSelector(p.Component)
	flags := v.s.ControlPlane.FlagsOf(s.Kind, v.s.ControlPlane.ReleaseOf(control.ComponentName(s.Kind, s.Index)))
	switch {
	case s.Role != "":
		v.fail(path+".component", "write "+s.Kind+" for all replicas, or name one, for example "+control.ComponentName(s.Kind, 0), "a role cannot be profiled, because the %s is not known before the run", s.Role)
	case control.KindOf(s.Kind).Stage == control.StageServices:
		v.fail(path+".component", "name a component of Kubernetes, etcd or "+OwnComponent, "%s does not serve profiles", s.Kind)
	case flags["profiling"] == "false" || s.Kind == control.KindEtcd && flags[etcdProfiles] == "false":
		v.fail(path+".component", "leave out the flag", "the profiles of %s are turned off by a flag", s.Kind)
	case p.Kind == mutexProfile && s.Kind != control.KindEtcd:
		v.fail(path+".kind", "only etcd and "+OwnComponent+" do; for other components, use block", "%s does not record mutex profiles", s.Kind)
	case p.Kind == blockProfile && s.Kind == control.KindEtcd:
		v.fail(path+".kind", "use mutex", "etcd does not record block profiles")
	case p.Kind == blockProfile && s.Kind == control.KindAPIServer && flags[apiServerBlocks] != "true":
		v.fail(path+".kind", `write controlPlane: {apiServer: {flags: {contention-profiling: "true"}}}, which costs CPU`, "kube-apiserver does not record block profiles by default")
	}
}

func (v *validator) profileTimes(path string, phase *Phase, p *Profile) {
	length, what := phase.lasts()
	end := p.After.D() + p.For.D()
	if length <= 0 || p.After.D() < length && end <= length {
		return
	}
	field := ".after"
	if p.After.D() < length {
		field = ".for"
	}
	v.fail(path+field, "start it earlier, or make the phase longer", "the profile ends %s after the start of phase %q, but %s %s", Duration(end), phase.Name, what, Duration(length))
}
