package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/profile"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// profiler takes the profiles that a scenario asks for. If it cannot take a profile, it records the profile as lost, and
// the run does not fail.
type profiler struct {
	journal
	dir  string // directory of the run
	open func() ([]profile.Source, error)

	sources []profile.Source // processes that serve profiles; set before the first phase with profiles

	mu    sync.Mutex
	taken []result.Profile
}

// errPhaseOver is the reason why a profile is lost if it was in progress when its phase ended.
var errPhaseOver = errors.New("the phase ended before the profile was complete")

type profiling struct {
	*profiler
	phase   string
	end     context.CancelFunc // cancels the profiles that have not begun or are in progress
	unwatch func()             // stops the sampling in this process
	done    sync.WaitGroup
}

// start takes the profiles of phase p in the background. Each profile is due at the time `start` plus its field After.
func (pr *profiler) start(ctx context.Context, p *scenario.Phase, start time.Time) *profiling {
	within, end := context.WithCancel(ctx)
	ps := &profiling{profiler: pr, phase: p.Name, end: end, unwatch: func() {}}
	if len(p.Profiles) == 0 {
		return ps
	}
	err := pr.prepare()
	var own []string
	for i := range p.Profiles {
		asked := &p.Profiles[i]
		of := pr.of(asked)
		if len(of) == 0 {
			ps.lose(asked, asked.Component, start, cmp.Or(err, pr.unknown()))
		}
		for _, source := range of {
			if source.Kind == scenario.OwnComponent {
				own = append(own, asked.Kind)
			}
			ps.done.Go(func() { ps.at(ctx, within, start.Add(asked.After.D()), asked, source) })
		}
	}
	ps.unwatch = profile.Watch(own)
	return ps
}

// prepare finds the processes that serve profiles, and always adds this process, even if it returns an error.
func (pr *profiler) prepare() error {
	if pr.sources != nil {
		return nil
	}
	found, err := pr.open()
	pr.sources = append(found, profile.Own(scenario.OwnComponent))
	return err
}

// of returns the processes from which to take the profile p. p names a component or a kind of components.
func (pr *profiler) of(p *scenario.Profile) (of []profile.Source) {
	for _, s := range pr.sources {
		if p.Component == s.Component || p.Component == s.Kind {
			of = append(of, s)
		}
	}
	return of
}

// unknown returns the error for a component that has no known process. It lists the available components.
func (pr *profiler) unknown() error {
	var known []string
	for _, s := range pr.sources {
		known = append(known, s.Component)
	}
	return fmt.Errorf("its address is unknown (known components: %s)", strings.Join(known, ", "))
}

// at takes a profile from the process `of` at the time `due`, unless the context `within` ends first.
func (ps *profiling) at(ctx, within context.Context, due time.Time, asked *scenario.Profile, of profile.Source) {
	if !apiclient.Pause(within, time.Until(due)) {
		ps.lose(asked, of.Component, due, errors.New("the phase ended before the profile began"))
		return
	}
	began := time.Now()
	detail := fmt.Sprintf("%s of %s", asked.Kind, of.Component)
	if asked.For > 0 {
		detail += fmt.Sprintf(" for %s", asked.For)
	}
	ps.event(began, result.EventNote, "profile", detail)
	taking, cut := context.WithCancelCause(ctx)
	defer cut(nil)
	defer context.AfterFunc(within, func() {
		if time.Since(began) < asked.For.D() { // still sampling; after that, only the transfer of the data remains
			cut(errPhaseOver)
		}
	})()
	data, err := of.Take(taking, asked.Kind, asked.For.D())
	if err == nil {
		err = ps.keep(asked, of.Component, began, data)
	}
	if err != nil {
		ps.lose(asked, of.Component, began, err)
	}
}

// stop ends the phase's profiles that are still in progress. The caller must call wait afterwards.
func (ps *profiling) stop() { ps.end() }

func (ps *profiling) wait() {
	ps.done.Wait()
	ps.unwatch()
}

// notInNames matches the characters that the method keep replaces in file names.
var notInNames = regexp.MustCompile(`[^A-Za-z0-9._-]`)

func (ps *profiling) keep(asked *scenario.Profile, component string, began time.Time, data []byte) error {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if err := os.MkdirAll(filepath.Join(ps.dir, result.ProfileDir), 0o700); err != nil {
		return userfile.Cause(err)
	}
	base := notInNames.ReplaceAllString(fmt.Sprintf("%s-%s-%s", ps.phase, component, asked.Kind), "_")
	name := base
	for n := 2; slices.ContainsFunc(ps.taken, func(t result.Profile) bool { return t.File == fileOf(name) }); n++ {
		name = fmt.Sprintf("%s-%d", base, n)
	}
	if err := rundir.WriteFile(filepath.Join(ps.dir, filepath.FromSlash(fileOf(name))), data); err != nil {
		return err
	}
	ps.taken = append(ps.taken, result.Profile{
		Phase: ps.phase, Component: component, Kind: asked.Kind, Began: began.UTC(), Seconds: asked.For.D().Seconds(), File: fileOf(name), Bytes: int64(len(data)),
	})
	return nil
}

func fileOf(name string) string { return path.Join(result.ProfileDir, name+".pb.gz") }

func (ps *profiling) lose(asked *scenario.Profile, component string, began time.Time, why error) {
	ps.step("profile %s of %s was not recorded: %v", asked.Kind, component, why)
	ps.mu.Lock()
	defer ps.mu.Unlock()
	ps.taken = append(ps.taken, result.Profile{Phase: ps.phase, Component: component, Kind: asked.Kind, Began: began.UTC(), Lost: why.Error()})
}

// all returns the profiles of the run in the order in which they began.
func (pr *profiler) all() []result.Profile {
	pr.mu.Lock()
	defer pr.mu.Unlock()
	slices.SortStableFunc(pr.taken, func(a, b result.Profile) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.Component, b.Component), cmp.Compare(a.Kind, b.Kind))
	})
	return pr.taken
}

// cpuProfiled lists the CPU profiles as deviations from upstream, because CPU profiling slows a component down.
func cpuProfiled(p *plan.Plan) []control.Deviation {
	var all []control.Deviation
	for _, of := range p.Profiles() {
		if of.Kind != scenario.CPUProfile {
			continue
		}
		d := control.Deviation{
			Component: of.Component, Setting: "CPU profile", Value: fmt.Sprintf("for %s in phase %s", of.For, of.Phase), Default: "(none)",
			Reason: "requested by the scenario; sampling stacks 100 times per second of CPU time costs a component about 1% of its CPU time, and more with many threads",
		}
		if !slices.Contains(all, d) {
			all = append(all, d)
		}
	}
	return all
}
