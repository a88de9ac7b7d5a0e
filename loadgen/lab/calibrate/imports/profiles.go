package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"

	"go.yaml.in/yaml/v3"
)

// query is one entry of an alert profile or a metrics profile of kube-burner.
type query struct {
	Expr       string `yaml:"expr"`
	Query      string `yaml:"query"`
	Severity   string `yaml:"severity"`
	MetricName string `yaml:"metricName"`
}

func (q query) text() string { return q.Expr + q.Query }

// fails reports whether the alert makes a run of kube-burner fail.
func (q query) fails() bool { return q.Severity == "error" || q.Severity == "critical" }

// isProfile returns the queries of a file. ok is false if the file is not a list of queries, and therefore not a
// profile.
func isProfile(data []byte) (all []query, ok bool) {
	if err := yaml.Unmarshal(data, &all); err != nil || len(all) == 0 {
		return nil, false
	}
	return all, !slices.ContainsFunc(all, func(q query) bool { return q.text() == "" })
}

// profiles imports each profile below o.profileDirs together with a small job. It does so twice: for a bundled control
// plane, and for a cluster with its own Prometheus server. It prints how many queries became gates, rows and remarks.
// In the second case, it also checks that the time ranges in the queries are unchanged.
func (o options) profiles(ctx context.Context, w io.Writer) error {
	var files []string
	for _, dir := range o.profileDirs {
		for _, pattern := range []string{"*.y*ml", "*/*.y*ml", "*/*/*.y*ml", "*/*/*/*.y*ml"} {
			found, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				return err
			}
			files = append(files, found...)
		}
	}
	if len(files) == 0 {
		return nil
	}
	scratch, err := os.MkdirTemp("", "imports")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "profile of kube-burner\tqueries\tgates\trows\tremarks\twith its own Prometheus: gates\trows\tremarks\twindows and severities")
	var wrong []string
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		all, ok := isProfile(data)
		if !ok {
			continue
		}
		here, err := o.profile(ctx, scratch, file, all)
		if err != nil {
			return err
		}
		own, err := o.profile(ctx, scratch, file, all, "--own-cluster")
		if err != nil {
			return err
		}
		kept := "kept"
		switch lost := own.differences(all); {
		case len(lost) == 0:
		case len(lost) <= own.remarks: // each lost query has a remark
			kept = fmt.Sprintf("kept, %d with a remark", len(lost))
		default:
			kept = fmt.Sprintf("%d differ", len(lost))
			wrong = append(wrong, lost...)
		}
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), len(all),
			len(here.gates), len(here.rows), here.remarks, len(own.gates), len(own.rows), own.remarks, kept)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	for _, line := range wrong {
		fmt.Fprintln(w, "  "+line)
	}
	return nil
}

// carried holds those parts of a scenario that the import created from the queries of a profile.
type carried struct {
	gates, rows []string // expressions of the gates and of the rows
	remarks     int
}

const (
	probeConfig = "jobs:\n- {name: probe, qps: 1, burst: 1, preLoadImages: false, waitWhenFinished: false, objects: [{objectTemplate: map.yml}]}\n"
	probeMap    = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: map-{{.Iteration}}\n"
)

func (o options) profile(ctx context.Context, scratch, file string, all []query, more ...string) (c carried, err error) {
	config := filepath.Join(scratch, "config.yml")
	for name, text := range map[string]string{config: probeConfig, filepath.Join(scratch, "map.yml"): probeMap} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			return c, err
		}
	}
	kind := "--alert-profile"
	if all[0].Query != "" {
		kind = "--metrics-profile"
	}
	text, says, err := o.command(ctx, nil, append([]string{"import", "kube-burner", config, kind, file}, more...)...)
	if err != nil {
		return c, fmt.Errorf("%s: %w: %s", file, err, says)
	}
	var s struct {
		Gates, Compare []struct {
			Expr string `yaml:"expr"`
		}
	}
	if err := yaml.Unmarshal([]byte(text), &s); err != nil {
		return c, fmt.Errorf("%s: read the scenario: %w", file, err)
	}
	for _, g := range s.Gates {
		if g.Expr != "" { // gates without an expression come from the job
			c.gates = append(c.gates, g.Expr)
		}
	}
	for _, r := range s.Compare {
		c.rows = append(c.rows, r.Expr)
	}
	c.remarks = strings.Count(says, "no gate") + strings.Count(says, "no figure") + strings.Count(says, "captureStart")
	return c, nil
}

var (
	ranges  = regexp.MustCompile(`\[[^\]"]*\]`)
	elapsed = regexp.MustCompile(`\{\{-?\s*\.elapsed\s*-?\}\}`)
)

// windows returns the time ranges in a PromQL expression, such as [5m], in order.
func windows(expr string) []string {
	return ranges.FindAllString(strings.ReplaceAll(elapsed.ReplaceAllString(expr, "$$window"), " ", ""), -1)
}

// differences returns a line for each query that the import did not keep with unchanged time ranges. A query must
// become a gate if it makes a run of kube-burner fail, and a row otherwise.
func (c carried) differences(all []query) (lines []string) {
	gates, rows := slices.Clone(c.gates), slices.Clone(c.rows)
	for _, q := range all {
		from := &rows
		if q.fails() {
			from = &gates
		}
		want := windows(q.text())
		at := slices.IndexFunc(*from, func(expr string) bool {
			return strings.Contains(expr, strings.Join(strings.Fields(elapsed.ReplaceAllString(q.text(), "$$window")), " ")) && containsAll(windows(expr), want)
		})
		if at < 0 {
			lines = append(lines, fmt.Sprintf("%s%s: not found unchanged: %s", q.Severity, q.MetricName, q.text()))
			continue
		}
		*from = slices.Delete(*from, at, at+1)
	}
	return lines
}

// containsAll reports whether list contains items as consecutive elements.
func containsAll(list, items []string) bool {
	for i := 0; i+len(items) <= len(list); i++ {
		if slices.Equal(list[i:i+len(items)], items) {
			return true
		}
	}
	return false
}
