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

	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/profile"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// profiler takes the profiles of a scenario. It notes profiles that it cannot take; the run does not fail because of them.
type profiler struct {
	journal
	dir  string // of the run
	open func() ([]profile.Source, error)

	sources []profile.Source // opened for the first phase that has profiles

	mu    sync.Mutex
	taken []result.Profile
}

// errPhaseOver is the reason why a profile in progress is lost.
var errPhaseOver = errors.New("the phase ended while it was taken")

// profiling takes the profiles of one phase.
type profiling struct {
	*profiler
	phase   string
	end     context.CancelFunc // prevents profiles that have not begun, and ends those in progress
	unwatch func()             // ends this process's sampling
	done    sync.WaitGroup
}

// start takes the profiles of a phase, each at its time after start.
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

// prepare finds the processes that serve profiles, always including this process.
func (pr *profiler) prepare() error {
	if pr.sources != nil {
		return nil
	}
	found, err := pr.open()
	pr.sources = append(found, profile.Own(scenario.OwnComponent))
	return err
}

// of returns the sources whose component or kind the profile names.
func (pr *profiler) of(p *scenario.Profile) (of []profile.Source) {
	for _, s := range pr.sources {
		if p.Component == s.Component || p.Component == s.Kind {
			of = append(of, s)
		}
	}
	return of
}

// unknown returns an error that lists the available components.
func (pr *profiler) unknown() error {
	var known []string
	for _, s := range pr.sources {
		known = append(known, s.Component)
	}
	return fmt.Errorf("its address is not known here (known: %s)", strings.Join(known, ", "))
}

// at takes a profile when it is due, unless within ends before.
func (ps *profiling) at(ctx, within context.Context, due time.Time, asked *scenario.Profile, of profile.Source) {
	timer := time.NewTimer(time.Until(due))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-within.Done():
		ps.lose(asked, of.Component, due, errors.New("the phase ended before it began"))
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
		if time.Since(began) < asked.For.D() { // else its data is on the way
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

// stop ends the profiles that are in progress at the end of the phase.
func (ps *profiling) stop() { ps.end() }

// wait returns when all profiles are taken or lost.
func (ps *profiling) wait() {
	ps.done.Wait()
	ps.unwatch()
}

// notInNames matches the characters that file names must not have.
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

// fileOf returns the path of a profile in the run's directory.
func fileOf(name string) string { return path.Join(result.ProfileDir, name+".pb.gz") }

func (ps *profiling) lose(asked *scenario.Profile, component string, began time.Time, why error) {
	ps.step("profile %s of %s is lost: %v", asked.Kind, component, why)
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
