// Package compare runs the variants of a scenario, one after another, and compares
// what was judged of each.
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
	"github.com/stormglass/stormglass/loadgen/internal/judge"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Compare judges the variants in dir again and sets them side by side. It reads
// nothing but the directory, and writes comparison.json, comparison.html and
// what Judge writes. An error means that nothing was compared, and then no older
// comparison.html stays.
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
			if v.NotRun == "" { // it ran, and cannot be judged again
				v.NotRun = v.Name + " is no directory of a run any more"
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
			judge.AddReasons(&res, &result.Damaged{File: result.ComparisonFile, Err: fmt.Errorf("it does not list %s, which ran", v.Name)})
		}
		if run := res.Run; run.ID != "" && (run.Variant != v.Name || run.Scenario != c.Scenario) {
			judge.AddReasons(&res, fmt.Errorf("what is in %s is not its run, but one of %s", v.Name, strings.TrimSpace(run.Scenario+" "+run.Variant)))
		}
		results[v.Name] = res
	}
	fill(&c, results)
	return c, writeComparison(dir, c)
}

// unlistedRuns are the runs in dir that a comparison does not know of.
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

// newComparison returns the comparison of a scenario's variants before any has run.
func newComparison(s *scenario.Scenario, now time.Time) result.Comparison {
	c := result.Comparison{Schema: result.ComparisonSchema, Scenario: s.Name, Description: s.Description, Started: now, Rows: []result.Row{}}
	for _, v := range s.Variants {
		c.Variants = append(c.Variants, result.Variant{
			Name: v.Name, Description: v.Description, Set: settings(v), Verdict: result.NoData, ExitCode: exitcode.NoData,
			NotRun: "the comparison ended before its turn",
		})
	}
	fill(&c, nil)
	return c
}

// settings are a variant's fields, as path=value, by path.
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

// fill puts the results of variants into their comparison.
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
						row.Values[j].Detail = "it did not run"
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
}

// ratios holds each value of a row against the first.
func ratios(values []result.Value) {
	first := values[0]
	if first.Value == nil || *first.Value == 0 || first.AtLeast {
		return
	}
	for i := range values[1:] {
		if v := &values[i+1]; v.Value != nil && !v.AtLeast {
			ratio := *v.Value / *first.Value
			v.Ratio = &ratio
		}
	}
}

// worse is the worse of two exit codes: a broken environment before a misuse, a
// failure, and what could not be judged.
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
	if err := report.WriteComparison(dir, c); err != nil {
		return exitcode.Environmentf("%w", err)
	}
	return nil
}
