package run

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/judge/alerting"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/scrape/promimport"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// AbortFlag is the flag that sets Options.AbortOn. NoFuse is the value of this flag that turns off the default conditions.
const (
	AbortFlag = "--abort-on"
	NoFuse    = "none"
)

// Fuse holds safety limits of a run that are not in its scenario, such as conditions that end the run early.
type Fuse struct {
	// AbortOn lists conditions that end the run early, in the syntax of scenario.ParseAbort. If the list contains
	// NoFuse, the default conditions for a user's cluster do not apply.
	AbortOn []string
	// Rules is a file or directory of Prometheus rules (see alerting.Read). AbortOn may name their alerts. Empty means the built-in rules.
	Rules string
	// Map replaces label values in Rules (see alerting.ParseMapping).
	Map []string
	// MaxRate is the upper limit of the total rate of the scenario's loads; 0 means unlimited.
	MaxRate scenario.Rate
	// NoLock means that the run does not take the lock of a user's cluster. TakeLock is the ID of a run whose lock this
	// run takes over even if that run still holds it.
	NoLock   bool
	TakeLock string
	// CleanupImage is the image of a Job that removes the run's objects from the cluster; empty means no Job.
	CleanupImage string
}

func (f Fuse) rules() (alerting.Ruleset, error) {
	set, _, err := alerting.Read(f.Rules)
	if len(strictyaml.Errors(err)) == 0 && err != nil {
		return nil, exitcode.Usagef("--abort-rules %w", err)
	}
	if err == nil {
		set, _, err = set.MapFlags(f.Map)
	}
	return set, exitcode.UsageError(err)
}

// Conditions returns AbortOn and, if Rules is set, a digest of the rules, to detect that a continued search has other
// conditions.
func (f Fuse) Conditions() ([]string, error) {
	if f.Rules == "" {
		return f.AbortOn, nil
	}
	set, err := f.rules()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(set)
	return append(slices.Clone(f.AbortOn), fmt.Sprintf("rules %.6x", sha256.Sum256(text))), err
}

// usualFuse returns the default conditions that end a run on a user's cluster early.
func usualFuse() []string { return []string{"errors=50%,for=10s", "etcd-quota=90%"} }

// aborts compiles the conditions that end a run early. They come from the scenario and from flags. On a user's cluster,
// aborts adds the default conditions.
func (o Options) aborts(p *plan.Plan) (*aborts, error) {
	own, err := gate.Stops(p)
	if err != nil {
		return nil, exitcode.UsageError(err)
	}
	f := o.Fuse
	options := gate.StopOptions{Elsewhere: o.Prometheus != nil && f.Rules == ""}
	if len(f.Map) > 0 && f.Rules == "" {
		return nil, exitcode.Usagef("--map requires --abort-rules FILE (add it, or leave out --map)")
	}
	if f.Rules != "" {
		if o.Prometheus != nil {
			return nil, exitcode.Usagef("--abort-rules and --prometheus cannot be used together: with --prometheus, alerts come from that Prometheus server (leave out one of them)")
		}
		if options.Rules, err = f.rules(); err != nil {
			return nil, err
		}
	}
	named := slices.DeleteFunc(slices.Clone(f.AbortOn), func(text string) bool { return strings.TrimSpace(text) == NoFuse })
	flags, err := gate.FlagStops(p, AbortFlag, named, options)
	if err != nil {
		return nil, exitcode.UsageError(err)
	}
	a := &aborts{stops: append(own, flags...), keep: options.Rules.Metrics()}
	if o.Kubeconfig.Files != "" && len(named) == len(f.AbortOn) {
		if a.usual, err = gate.FlagStops(p, AbortFlag, usualFuse(), gate.StopOptions{}); err != nil {
			return nil, err
		}
	}
	return a, nil
}

func (a *aborts) texts() (all []string) {
	for _, s := range slices.Concat(a.stops, a.usual) {
		all = append(all, s.Text())
	}
	return all
}

// check returns an error for each condition on an alert that the Prometheus server `source` does not have. If the
// server does not list its rules, check only calls `note`.
func (a *aborts) check(ctx context.Context, source *promimport.Source, note func(string)) error {
	var named []string
	for _, s := range a.stops {
		if s.Alert != "" {
			named = append(named, s.Alert)
		}
	}
	if len(named) == 0 {
		return nil
	}
	known, err := source.Alerts(ctx)
	if err != nil {
		note(fmt.Sprintf("could not check that %s has rules for the alerts of %s: %v", source.URL(), AbortFlag, err))
		return nil
	}
	var errs []error
	for _, name := range named {
		if !slices.Contains(known, name) {
			hint := strictyaml.Hint(name, known, fmt.Sprintf("it has %d alerts", len(known)))
			errs = append(errs, exitcode.Usagef("%s alert=%s: %s has no such alert (%s)", AbortFlag, name, source.URL(), hint))
		}
	}
	return errors.Join(errs...)
}

func (o Options) checkRate(p *plan.Plan) error {
	if o.Fuse.MaxRate == 0 {
		return nil
	}
	return exitcode.UsageError(p.CheckRate(o.Fuse.MaxRate))
}

// checkFuse returns an error for options that need a user's cluster in a run without one, and for options that cannot
// be used together.
func (o Options) checkFuse() error {
	f := o.Fuse
	for flag, set := range map[string]bool{"--no-lock": f.NoLock, "--take-lock": f.TakeLock != "", "--cleanup-job": f.CleanupImage != ""} {
		if set && o.Kubeconfig.Files == "" {
			return exitcode.Usagef("%s: requires --kubeconfig FILE", flag)
		}
	}
	if f.NoLock && f.TakeLock != "" {
		return exitcode.Usagef("--take-lock and --no-lock cannot be used together (leave out one of them)")
	}
	return nil
}
