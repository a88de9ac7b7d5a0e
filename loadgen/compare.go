package loadgen

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

	"github.com/stormglass/stormglass/loadgen/report"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// IsComparison tells whether dir is that of several variants.
func IsComparison(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, result.ComparisonFile))
	return err == nil
}

// Compare judges the variants in dir again and sets them side by side. It reads
// nothing but the directory, and writes comparison.json, comparison.html and
// what Judge writes.
func Compare(ctx context.Context, dir string) (result.Comparison, error) {
	var c result.Comparison
	if err := readJSON(dir, result.ComparisonFile, &c); err != nil {
		return c, err
	}
	if c.Schema != result.ComparisonSchema {
		return c, usagef("%s: schema %q, not %q", filepath.Join(dir, result.ComparisonFile), c.Schema, result.ComparisonSchema)
	}
	results := map[string]result.Result{}
	for i := range c.Variants {
		v := &c.Variants[i]
		if !filepath.IsLocal(v.Name) {
			return c, usagef("%s: variant %q is no name (the file is damaged)", filepath.Join(dir, result.ComparisonFile), v.Name)
		}
		of := filepath.Join(dir, v.Name)
		if _, err := os.Stat(filepath.Join(of, result.RunFile)); errors.Is(err, fs.ErrNotExist) {
			continue // it did not run, and says why
		}
		res, err := Judge(ctx, of)
		if err != nil {
			return c, fmt.Errorf("variant %s: %w", v.Name, err)
		}
		results[v.Name] = res
	}
	fill(&c, results)
	return c, writeComparison(dir, c)
}

// newComparison is the comparison of a scenario's variants of which none has run.
func newComparison(s *scenario.Scenario, now time.Time) result.Comparison {
	c := result.Comparison{Schema: result.ComparisonSchema, Scenario: s.Name, Description: s.Description, Started: now, Rows: []result.Row{}}
	for _, v := range s.Variants {
		c.Variants = append(c.Variants, result.Variant{
			Name: v.Name, Description: v.Description, Set: settings(v), Verdict: result.NoData, ExitCode: ExitNoData,
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
	c.Rows, c.ExitCode = []result.Row{}, ExitPass
	at := map[string]int{}
	for i := range c.Variants {
		v := &c.Variants[i]
		if res, ok := results[v.Name]; ok {
			v.Verdict, v.ExitCode, v.Reasons, v.NotRun = res.Verdict, res.ExitCode, res.Reasons, ""
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
	order := []int{ExitPass, ExitNoData, 1, ExitUsage, ExitEnvironment}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

func writeComparison(dir string, c result.Comparison) error {
	if err := writeJSON(dir, result.ComparisonFile, c); err != nil {
		return err
	}
	if err := report.WriteComparison(dir, c); err != nil {
		return environmentf("%w", err)
	}
	return nil
}
