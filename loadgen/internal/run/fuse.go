package run

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/judge/alerting"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/record/promimport"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// AbortFlag is the flag for Options.AbortOn. NoFuse is the value of the flag that leaves out the default conditions.
const (
	AbortFlag = "--abort-on"
	NoFuse    = "none"
)

// Fuse limits a run in addition to its scenario: it says when the run ends early and how much it may send.
type Fuse struct {
	// AbortOn has conditions that scenario.ParseAbort reads. NoFuse among them leaves out the default conditions for a
	// user's cluster.
	AbortOn []string
	// Rules is a file of Prometheus rules whose alerts AbortOn may name. Empty means the built-in rules.
	Rules string
	// MaxRate is the highest rate of all loads together; 0 means unlimited.
	MaxRate scenario.Rate
	// NoLock runs on a user's cluster without its lock. TakeLock names a run whose lock is taken over even though that run holds it.
	NoLock   bool
	TakeLock string
	// CleanupImage is the image of a Job that cleans up in the cluster; empty means no Job.
	CleanupImage string
}

// rules returns the content of the file Rules.
func (f Fuse) rules() ([]byte, error) {
	text, err := userfile.Read(f.Rules, userfile.Text)
	if err != nil {
		return nil, exitcode.Usagef("--abort-rules %s: %w", f.Rules, userfile.Cause(err))
	}
	return text, nil
}

// Conditions returns AbortOn and, if Rules is set, a digest of the file.
func (f Fuse) Conditions() ([]string, error) {
	if f.Rules == "" {
		return f.AbortOn, nil
	}
	text, err := f.rules()
	if err != nil {
		return nil, err
	}
	return append(slices.Clone(f.AbortOn), fmt.Sprintf("rules %.6x", sha256.Sum256(text))), nil
}

// usualFuse returns the default conditions of a run on a user's cluster.
func usualFuse() []string { return []string{"errors=50%,for=10s", "etcd-quota=90%"} }

// aborts compiles the conditions that end a run early: from the scenario, from flags and, on a user's cluster, the default
// ones.
func (o Options) aborts() (*aborts, error) {
	own, err := gate.Stops(o.Scenario)
	if err != nil {
		return nil, exitcode.UsageError(err)
	}
	f := o.Fuse
	options := gate.StopOptions{Elsewhere: o.Prometheus != nil && f.Rules == ""}
	if f.Rules != "" {
		if o.Prometheus != nil {
			return nil, exitcode.Usagef("--abort-rules: with --prometheus, alerts come from that Prometheus (leave out one of them)")
		}
		text, err := f.rules()
		if err != nil {
			return nil, err
		}
		if options.Rules, err = alerting.Parse(f.Rules, text); err != nil {
			return nil, exitcode.UsageError(err)
		}
	}
	named := slices.DeleteFunc(slices.Clone(f.AbortOn), func(text string) bool { return strings.TrimSpace(text) == NoFuse })
	flags, err := gate.FlagStops(o.Scenario, AbortFlag, named, options)
	if err != nil {
		return nil, exitcode.UsageError(err)
	}
	a := &aborts{stops: append(own, flags...)}
	if o.Kubeconfig.Files != "" && len(named) == len(f.AbortOn) {
		if a.usual, err = gate.FlagStops(o.Scenario, AbortFlag, usualFuse(), gate.StopOptions{}); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// texts returns the conditions as people write them.
func (a *aborts) texts() (all []string) {
	for _, s := range slices.Concat(a.stops, a.usual) {
		all = append(all, s.Text())
	}
	return all
}

// check returns an error for conditions on alerts for which a Prometheus has no rules. It accepts a Prometheus that
// does not list its rules.
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
		note(fmt.Sprintf("whether %s has rules for the alerts of %s is not known: %v", source.URL(), AbortFlag, err))
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

// checkRate returns an error if the scenario sends more than Fuse.MaxRate.
func (o Options) checkRate() error {
	if o.Fuse.MaxRate == 0 {
		return nil
	}
	return exitcode.UsageError(o.Scenario.CheckRate(o.Fuse.MaxRate))
}

// checkFuse returns an error for options that need a user's cluster if none exists, and for options that exclude each
// other.
func (o Options) checkFuse() error {
	f := o.Fuse
	for flag, set := range map[string]bool{"--no-lock": f.NoLock, "--take-lock": f.TakeLock != "", "--cleanup-job": f.CleanupImage != ""} {
		if set && o.Kubeconfig.Files == "" {
			return exitcode.Usagef("%s: requires --kubeconfig FILE", flag)
		}
	}
	if f.NoLock && f.TakeLock != "" {
		return exitcode.Usagef("--take-lock and --no-lock exclude each other (leave out one of them)")
	}
	return nil
}
