package judge

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/judge/alerting"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// By judges the run in dir by other gates than its own, and writes nothing. Each of files
// is either gates, as in a scenario (gates: [...]), or Prometheus' rules (groups: [...]),
// of which no alert may fire in any phase unless a gate of another file names it. Lost
// scrapes, a saturated generator and the like count as in Judge.
func By(ctx context.Context, dir string, files []string) (res result.Result, err error) {
	rec, err := rundir.Open(dir)
	if err != nil {
		return res, err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	if rec.Scenario == nil { // gates are about its phases and loads
		return res, fmt.Errorf("%s: %w", dir, errors.Join(rec.Damage...))
	}
	gates, err := readGates(rec.Scenario, files)
	switch {
	case err != nil && rec.Foreign != nil: // the gates may be about what it has lost
		err = fmt.Errorf("it is not the scenario that was run, and the gates do not fit it: %w", err)
		return res, fmt.Errorf("%s: %w", dir, &result.Damaged{File: result.ScenarioFile, Err: err})
	case err != nil:
		return res, exitcode.UsageError(err)
	}
	return judge(ctx, rec, gates)
}

func readGates(s *scenario.Scenario, files []string) ([]gate.Compiled, error) {
	var rules alerting.Ruleset
	texts := map[string][]byte{} // of those that hold gates
	var errs []error
	for _, file := range files {
		text, err := userfile.Read(file, userfile.Text)
		if err != nil {
			errs = append(errs, fmt.Errorf("--rules %s: %w (name a file of gates, or of Prometheus' rules)", file, err))
			continue
		}
		switch holds(text) {
		case "gates":
			texts[file] = text
		case "spec":
			errs = append(errs, fmt.Errorf("%s: an object of the Prometheus operator (write what is under spec: into a file of its own: groups: [...])", file))
		case "groups":
			set, err := alerting.Parse(file, text)
			if err == nil && len(set.Alerts()) == 0 {
				err = fmt.Errorf("%s: there are no alerts in it (records judge nothing)", file)
			}
			rules, errs = append(rules, set...), append(errs, err)
		default:
			errs = append(errs, fmt.Errorf("%s: neither gates nor rules (write gates: as in a scenario, or groups: as for Prometheus)", file))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var all []gate.Compiled
	names, about := map[string]bool{}, map[string]bool{}
	for _, file := range files {
		text, ok := texts[file]
		if !ok {
			continue
		}
		with, err := s.WithGates(file, text)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		gates, err := gate.CompileWith(with, rules)
		errs = append(errs, err)
		for _, g := range gates {
			if names[g.Name] {
				errs = append(errs, with.Errorf("gates."+g.Name, "gates are told apart by name", "another file has a gate %q too", g.Name))
			}
			about[g.Alert] = true
		}
		for _, g := range gates {
			names[g.Name] = true
		}
		all = append(all, gates...)
	}
	quiet, err := gate.Quiet(s, rules)
	if err := errors.Join(append(errs, err)...); err != nil {
		return nil, err
	}
	for _, g := range quiet {
		if about[g.Alert] {
			continue
		}
		if names[g.Name] {
			errs = append(errs, fmt.Errorf("an alert and a gate are both called %q (gates are told apart by name, and each alert is one: rename the gate)", g.Name))
		}
		all = append(all, g)
	}
	return all, errors.Join(errs...)
}

// holds is the field of a YAML file that tells what it is, or "".
func holds(text []byte) string {
	var fields map[string]yaml.Node
	err := yaml.NewDecoder(bytes.NewReader(text)).Decode(&fields)
	switch {
	case errors.Is(err, io.EOF):
		return ""
	case err != nil:
		return "gates" // whose reader says what is wrong, and where
	}
	for _, name := range []string{"gates", "groups", "spec"} {
		if _, ok := fields[name]; ok {
			return name
		}
	}
	return ""
}
