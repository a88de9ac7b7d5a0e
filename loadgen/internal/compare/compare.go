// Package compare runs the variants of a scenario one after another and compares their
// results.
package compare

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/judge"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/series"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Compare judges the variants in dir again and compares them. It reads only dir, and writes comparison.json,
// comparison.html and the result files of each variant. If Compare fails, it removes an older comparison.html.
func Compare(ctx context.Context, dir string) (c result.Comparison, err error) {
	defer func() {
		if err == nil {
			return
		}
		if stale := os.Remove(filepath.Join(dir, result.ComparisonHTMLFile)); !errors.Is(stale, fs.ErrNotExist) {
			err = errors.Join(err, stale)
		}
	}()
	if err := result.ReadJSON(dir, result.ComparisonFile, &c); err != nil {
		return c, fmt.Errorf("%s: %w (`loadgen report DIR/VARIANT` judges one variant)", dir, err)
	}
	unlisted, err := unlistedRuns(dir, c)
	if err != nil {
		return c, err
	}
	for _, name := range unlisted {
		c.Variants = append(c.Variants, result.Variant{Name: name})
	}
	results := map[string]result.Result{}
	for i := range c.Variants {
		v := &c.Variants[i]
		of := filepath.Join(dir, v.Name)
		if ours, err := result.IsRunDir(of); err != nil || !ours {
			if v.NotRun == "" { // the variant ran, but Compare cannot judge it again
				v.NotRun = v.Name + " no longer contains a run"
			}
			if v.Verdict = result.NoData; worse(exitcode.Pass, v.ExitCode) == exitcode.Pass {
				v.ExitCode = exitcode.NoData
			}
			continue
		}
		res, err := judge.Judge(ctx, of)
		if err != nil {
			return c, fmt.Errorf("variant %s: %w", v.Name, err)
		}
		if slices.Contains(unlisted, v.Name) {
			judge.AddReasons(&res, &result.Damaged{File: result.ComparisonFile, Err: fmt.Errorf("it does not list variant %s, although this variant ran", v.Name)})
		}
		if run := res.Run; run.ID != "" && (run.Variant != v.Name || run.Scenario != c.Scenario) {
			judge.AddReasons(&res, fmt.Errorf("the directory %s contains a run of %s instead of variant %s", v.Name, strings.TrimSpace(run.Scenario+" "+run.Variant), v.Name))
		}
		results[v.Name] = res
	}
	fill(&c, results)
	return c, writeComparison(dir, c)
}

func unlistedRuns(dir string, c result.Comparison) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, exitcode.Usagef("%s: %w", dir, userfile.Cause(err))
	}
	for _, e := range entries {
		ours, err := result.IsRunDir(filepath.Join(dir, e.Name()))
		if err == nil && ours && !slices.ContainsFunc(c.Variants, func(v result.Variant) bool { return v.Name == e.Name() }) {
			names = append(names, e.Name())
		}
	}
	return names, nil
}

func newComparison(s *scenario.Scenario, now time.Time) result.Comparison {
	c := result.Comparison{Schema: result.ComparisonSchema, Scenario: s.Name, Description: s.Description, Started: now, Rows: []result.Row{}}
	for _, v := range s.Variants {
		c.Variants = append(c.Variants, result.Variant{
			Name: v.Name, Description: v.Description, Set: settings(v), Verdict: result.NoData, ExitCode: exitcode.NoData,
			NotRun: "this variant did not run, because the comparison ended early",
		})
	}
	fill(&c, nil)
	return c
}

// settings returns the fields that a variant sets, as path=value, sorted by path.
func settings(v scenario.Variant) []string {
	var all []string
	for _, path := range slices.Sorted(maps.Keys(v.Set)) {
		node := yaml.Node{}
		text := []byte(fmt.Sprint(v.Set[path]))
		if err := node.Encode(v.Set[path]); err == nil {
			node.Style = yaml.FlowStyle
			if flow, err := yaml.Marshal(&node); err == nil {
				text = flow
			}
		}
		all = append(all, path+"="+strings.Join(strings.Fields(string(text)), " "))
	}
	return all
}

func fill(c *result.Comparison, results map[string]result.Result) {
	c.Rows, c.ExitCode = []result.Row{}, exitcode.Pass
	at := map[string]int{}
	for i := range c.Variants {
		v := &c.Variants[i]
		if res, ok := results[v.Name]; ok {
			v.Verdict, v.ExitCode, v.Reasons, v.NotRun, v.Left = res.Verdict, res.ExitCode, res.Reasons, "", res.Run.Left
		}
		c.ExitCode = worse(c.ExitCode, v.ExitCode)
		for _, f := range results[v.Name].Figures {
			if _, known := at[f.Name]; !known {
				at[f.Name] = len(c.Rows)
				row := result.Row{Name: f.Name, Objective: f.Objective, Unit: f.Unit, Better: f.Better, Values: make([]result.Value, len(c.Variants))}
				for j, w := range c.Variants {
					if _, ran := results[w.Name]; !ran {
						row.Values[j].Detail = "the variant did not run"
					}
				}
				c.Rows = append(c.Rows, row)
			}
			c.Rows[at[f.Name]].Values[i] = result.Value{Value: f.Value, AtLeast: f.AtLeast, Detail: f.Detail}
		}
	}
	for _, row := range c.Rows {
		ratios(row.Values)
	}
	for i := range c.Variants[1:] {
		v := &c.Variants[i+1]
		v.Grown = spans.Grown([]*result.Traces{results[c.Variants[0].Name].Traces}, []*result.Traces{results[v.Name].Traces})
	}
}

// ratios sets the ratio of each value in a row to the first value of the row.
func ratios(values []result.Value) {
	first := values[0]
	if first.Value == nil || *first.Value == 0 || first.AtLeast {
		return
	}
	for i := range values[1:] {
		if v := &values[i+1]; v.Value != nil && !v.AtLeast {
			v.Ratio = new(*v.Value / *first.Value)
		}
	}
}

// worse returns the worse of two exit codes. From worst to best: environment, usage,
// failure, no data, pass.
func worse(a, b int) int {
	order := []int{exitcode.Pass, exitcode.NoData, exitcode.Fail, exitcode.Usage, exitcode.Environment}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

func writeComparison(dir string, c result.Comparison) error {
	if err := rundir.WriteJSON(dir, result.ComparisonFile, c); err != nil {
		return err
	}
	return exitcode.EnvironmentError(report.WriteComparison(dir, c))
}

// Run runs all variants of a scenario one after another and compares them. Each variant has a separate control plane,
// and a directory with its name. If a variant cannot run, the next variants still run. After an interrupt, Run starts
// no further variant and compares the finished ones. If Run fails before any variant ran, it removes the directory.
func Run(ctx context.Context, o run.Options) (c result.Comparison, dir string, err error) {
	variants := o.Scenario.AllVariants()
	if len(variants) == 0 {
		return c, "", exitcode.Usagef("--variant all: scenario %s has no variants (write variants: [{name: ..., set: {...}}])", o.Scenario.Name)
	}
	for _, v := range variants {
		if err := CheckVariant(o.Scenario, v.Variant, o.Kubeconfig); err != nil {
			return c, "", err
		}
		of := o
		of.Scenario = v
		if err := run.Check(ctx, of); err != nil {
			return c, "", err
		}
	}
	if o.Kubeconfig.Files == "" && o.Plane == "" && o.ControlPlane == "" { // check here: a missing binary must not be an error of each variant
		if o.ControlPlane, err = run.FindControlPlane(); err != nil {
			return c, "", err
		}
	}
	c = newComparison(o.Scenario, time.Now().UTC())
	whole, err := run.MakeDirectory(o.Out, o.Scenario.Name, c.Started)
	if err != nil {
		return c, "", err
	}
	defer whole.Unlock()
	dir = whole.Path
	if err := writeComparison(dir, c); err != nil {
		return c, "", errors.Join(err, whole.Remove())
	}
	results := map[string]result.Result{}
	var failed []error
	for i, v := range variants {
		if ctx.Err() != nil {
			c.Variants[i].NotRun = "this variant did not run, because the comparison was interrupted"
			continue
		}
		o.Progress.Step(fmt.Sprintf("variant %s, %d of %d", v.Variant, i+1, len(variants)))
		of := o
		of.Scenario, of.Out = v, filepath.Join(dir, v.Variant)
		res, err := series.RunJudged(ctx, of)
		if err != nil {
			failed = append(failed, fmt.Errorf("variant %s: %w", v.Variant, err))
			c.Variants[i].Left = run.Left(err)
			c.Variants[i].NotRun, c.Variants[i].ExitCode = strings.ReplaceAll(err.Error(), "\n", "; "), exitcode.Of(err)
			o.Progress.Step(fmt.Sprintf("variant %s did not run: %s", v.Variant, c.Variants[i].NotRun))
		} else {
			results[v.Variant] = res
		}
		fill(&c, results)
		if err := writeComparison(dir, c); err != nil { // a report must be possible even if the process is killed
			return c, dir, err
		}
	}
	if len(results) == 0 {
		left := whole.Remove()
		if len(failed) == 0 {
			return c, "", run.Interrupted(left)
		}
		return c, "", errors.Join(errors.Join(failed...), left)
	}
	c.Ended = time.Now().UTC()
	fill(&c, results)
	return c, dir, writeComparison(dir, c)
}

// CheckVariant returns an error if a variant sets fields of the control plane but the run uses a user's cluster. These
// fields would have no effect.
func CheckVariant(s *scenario.Scenario, name string, kubeconfig cluster.Kubeconfig) error {
	i := slices.IndexFunc(s.Variants, func(v scenario.Variant) bool { return v.Name == name })
	if i < 0 || kubeconfig.Files == "" {
		return nil
	}
	for path := range s.Variants[i].Set {
		if path == "controlPlane" || strings.HasPrefix(path, "controlPlane.") {
			return exitcode.UsageError(s.Errorf(fmt.Sprintf("variants[%d].set", i), "run it without --kubeconfig",
				"variant %s sets %s, which has no effect on your own cluster", name, path))
		}
	}
	return nil
}
