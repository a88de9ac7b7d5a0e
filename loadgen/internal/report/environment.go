package report

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// environment holds the versions and settings that are needed to repeat a run, for the page.
type environment struct {
	Tables                []table
	Command, ByFile, YAML string
	Log                   table
}

func environmentView(_ context.Context, p *page) (any, error) {
	e := environment{Tables: environmentTables(p.result), YAML: p.yaml, Log: p.eventLog(p.events)}
	e.Command, e.ByFile = commands(p.result)
	return e, nil
}

// environmentTables returns the tables that a reader needs to check or repeat the measurements.
func environmentTables(r result.Result) []table {
	dev := table{
		Caption: "Settings that differ from the upstream defaults",
		Empty:   "None.",
		Head:    heads("Component", "Setting", "Value", "Default", "Reason"),
	}
	for _, d := range r.Run.Cluster.Deviations {
		dev.add(terminal.Clean(d.Component), terminal.Clean(d.Setting), terminal.Clean(d.Value), terminal.Clean(d.Default), terminal.Clean(d.Reason))
	}
	switch {
	case r.Run.ID == "":
		dev.Empty = "Not recorded."
	case len(r.Run.Cluster.Deviations) == 0 && !r.Run.Cluster.Bundled:
		dev.Empty = "Not known, because Stormglass did not start the control plane."
	}
	v, h, c := r.Run.Versions, r.Run.Host, r.Run.Cluster
	env := table{Caption: "Versions and machine", Head: heads("Fact", "Value")}
	for _, row := range []fact{
		{"Run", r.Run.ID}, {"Labels", strings.Join(labelTexts(r.Run), ", ")}, {"Stormglass", v.Stormglass}, {"Kubernetes", kubernetesText(v)}, {"etcd", etcdText(v)}, {"Go", v.Go},
		{"Generator's machine", h.OS + ", kernel " + h.Kernel},
		{"CPU", fmt.Sprintf("%d × %s", h.CPUs, h.CPUModel)},
		{"Memory", chart.Format(scenario.Size, float64(h.MemoryBytes))},
		{"Limit of open files", chart.Group(fmt.Sprint(h.Descriptors))},
		{"API server", c.Server}, {"Scraped components", strings.Join(c.Targets, ", ")},
		{"Scrapes", scrapes(r.Measurements)},
	} {
		if row.Value = terminal.Clean(row.Value); row.Value != "" {
			env.add(row.Name, row.Value)
		}
	}
	for _, p := range r.Measurements.Phases {
		if p.Machine != nil {
			env.add("Generator's machine in phase "+terminal.Clean(p.Name), terminal.Clean(strings.Join(p.Machine.Notes, "; ")))
		}
	}
	if r.Run.Cluster.Bundled && c.Name != result.SharedCluster {
		env.add("Logs of the components", "controlplane/logs in the run directory, which contains this page")
	}
	if c.ReadySeconds > 0 {
		env.add("Control plane ready after", seconds(c.ReadySeconds))
	}
	return []table{dev, env}
}

// labelTexts returns the labels of a run as NAME=VALUE, sorted by name.
func labelTexts(run result.Run) (texts []string) {
	for _, name := range slices.Sorted(maps.Keys(run.Labels)) {
		texts = append(texts, name+"="+run.Labels[name])
	}
	return texts
}

func scrapes(m result.Measurements) string {
	if !measuredToTheEnd(m) {
		return "not recorded"
	}
	s := m.Scrapes
	text := chart.Count(s.Done)
	if lost := tally(s.Failed); lost != "" {
		text += ", of these lost: " + lost
	}
	return text
}

// commands returns two commands that repeat the run: the command that the user typed, and a command that uses the
// recorded scenario. The second command works even if the catalogue of scenarios has changed.
func commands(r result.Result) (typed, byFile string) {
	var cluster string
	if !r.Run.Cluster.Bundled {
		cluster = " --kubeconfig FILE"
	}
	typed = "loadgen run " + shellQuote(terminal.Clean(r.Run.Scenario))
	if r.Run.Variant != "" {
		typed += " --variant " + shellQuote(terminal.Clean(r.Run.Variant))
	}
	for _, o := range r.Run.Overrides {
		typed += " --set " + shellQuote(terminal.Clean(o))
	}
	for _, g := range r.Run.WithoutGates {
		typed += " --without-gate " + shellQuote(terminal.Clean(g))
	}
	if r.Run.WithoutHooks {
		typed += " --no-hooks"
	}
	for _, l := range labelTexts(r.Run) {
		typed += " --label " + shellQuote(terminal.Clean(l))
	}
	return typed + cluster, "loadgen run DIR/" + result.ScenarioFile + cluster
}

// shellQuote quotes s, unless a POSIX shell reads it literally without quotes.
func shellQuote(s string) string {
	safe := strings.IndexFunc(s, func(r rune) bool {
		return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./:,%+@", r)
	}) < 0
	if safe && s != "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
