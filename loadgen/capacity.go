package loadgen

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/stormglass/stormglass/loadgen/internal/capacity"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// CapacityOptions are the options of a capacity search. Scenario, Read, Width, Trials and Progress are required.
type CapacityOptions struct {
	Scenario *scenario.Scenario
	// Read reads the scenario with the given path=value settings.
	Read      func(sets []string) (*scenario.Scenario, error)
	Overrides []string
	Width     float64 // width of the interval at which the search ends; 0.15 is 15%
	Trials    int     // the maximum number of trials
	// Out is the directory of the search, which must be new or empty; "" means runs/TIME-NAME. Resume is the directory
	// of a search to continue.
	Out, Resume  string
	ControlPlane string
	// Fuse applies to each trial. If Fuse ends a trial early, the gates count as failed at that load. The parts of Fuse
	// that protect a user's cluster have no effect.
	Fuse     Fuse
	Progress Progress
	Hurry    <-chan struct{} // the same as Options.Hurry
}

// Capacity searches for the highest load at which all gates of a scenario hold. It returns the result and the directory
// of the search. If it returns an error, no trial was run.
func Capacity(ctx context.Context, o CapacityOptions) (result.Capacity, string, error) {
	return capacity.Run(ctx, o.internal())
}

// CapacityDryRun performs the checks of Capacity and returns what a trial at the highest load would create and send. It
// creates nothing.
func CapacityDryRun(ctx context.Context, o CapacityOptions) (CapacityPreview, error) {
	return capacity.DryRun(ctx, o.internal())
}

func (o CapacityOptions) internal() capacity.RunOptions {
	of := Options{Scenario: o.Scenario, Overrides: o.Overrides, Out: o.Out, ControlPlane: o.ControlPlane, Progress: o.Progress, Hurry: o.Hurry, Fuse: o.Fuse}
	return capacity.RunOptions{Options: of.internal(), Read: o.Read, Width: o.Width, Most: o.Trials, Resume: o.Resume}
}

// Of returns the options for searching the capacity of one side.
func (o CapacityOptions) Of(side ABSide) CapacityOptions {
	read := o.Read
	o.Scenario, o.Overrides, o.ControlPlane, o.Out, o.Resume = side.Scenario, side.Set, cmp.Or(side.ControlPlane, o.ControlPlane), "", ""
	o.Read = func(sets []string) (*scenario.Scenario, error) {
		sc, err := read(sets)
		if err != nil || side.Variant == "" {
			return sc, err
		}
		return sc.WithVariant(side.Variant)
	}
	return o
}

// CapacitySides searches for the capacity of two sides, with alternating trials. It returns the comparison and its
// directory. If it returns an error, no trial was run.
//
// CapacitySides first builds the sides that are revisions. It ignores the scenario and the settings in o. It uses
// o.ControlPlane only for a side that does not name its own binary.
func CapacitySides(ctx context.Context, o CapacityOptions, a, b ABSide) (result.CapacityComparison, string, error) {
	var sides [2]capacity.RunOptions
	for i, side := range []ABSide{a, b} {
		sides[i] = o.Of(side).internal()
		sides[i].Build = func(ctx context.Context) error { return side.Build(ctx, o.Progress.Step) }
	}
	return capacity.RunInTurns(ctx, sides, o.Out, o.Resume)
}

// CompareCapacity compares two searches of the same field. a and b are the directories of the searches.
func CompareCapacity(a, b string) (result.CapacityComparison, error) {
	return capacity.Compare([2]string{a, b})
}

// WriteCapacityComparisonText writes a comparison of searches for a terminal.
func WriteCapacityComparisonText(w io.Writer, c result.CapacityComparison, o TextOptions) error {
	return report.CapacityComparison(w, c, o)
}

// WriteCapacityComparisonMarkdown writes a comparison of searches for the summary of a CI job.
func WriteCapacityComparisonMarkdown(w io.Writer, c result.CapacityComparison) error {
	return fenced(w, func(w io.Writer) error { return report.CapacityComparison(w, c, TextOptions{Width: 120}) })
}

// fenced writes text for a terminal as a Markdown code block.
func fenced(w io.Writer, write func(io.Writer) error) error {
	if _, err := fmt.Fprint(w, "```\n"); err != nil {
		return err
	}
	if err := write(w); err != nil {
		return err
	}
	_, err := fmt.Fprint(w, "```\n\n")
	return err
}

// WriteCapacityText writes a search for a terminal.
func WriteCapacityText(w io.Writer, c result.Capacity, o TextOptions) error {
	return report.Capacity(w, c, o)
}

// WriteCapacityMarkdown writes a search for the summary of a CI job.
func WriteCapacityMarkdown(w io.Writer, c result.Capacity) error {
	return fenced(w, func(w io.Writer) error { return report.Capacity(w, c, TextOptions{Width: 120}) })
}
