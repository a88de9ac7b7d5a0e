package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/loadgen"
)

// preview shows what a run would do. It returns the error that would keep the run from
// beginning.
func preview(cmd *cobra.Command, o loadgen.Options, variant string, output *commandline.Output) error {
	if variant == "all" {
		return loadgen.Usage(errors.New("--dry-run shows one variant (name it by --variant NAME)"))
	}
	p, err := loadgen.DryRun(cmd.Context(), o)
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	if err := output.Write(w, p, func() error { return p.WriteText(w) }); err != nil {
		return err
	}
	return loadgen.EnvironmentFailed(p.Refused())
}

// previewAB shows what the runs of both sides would do.
func previewAB(cmd *cobra.Command, o loadgen.ABOptions, output *commandline.Output) error {
	p, err := loadgen.ABDryRun(cmd.Context(), o)
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	return output.Write(w, p, func() error { return p.WriteText(w) })
}

// withoutRevisions leaves out specs of revisions, which would have to be built.
func withoutRevisions(specs []string) []string {
	return slices.DeleteFunc(slices.Clone(specs), func(spec string) bool { return strings.HasPrefix(spec, "rev=") })
}

// previewCapacity shows what a trial at the highest load would do. If b is not empty, it shows a trial of both sides.
func previewCapacity(cmd *cobra.Command, o loadgen.CapacityOptions, a, b []string, output *commandline.Output) error {
	searches := []loadgen.CapacityOptions{o}
	if len(b) > 0 {
		sides, err := searchedSides(cmd.Context(), o, withoutRevisions(a), withoutRevisions(b))
		if err != nil {
			return err
		}
		searches = []loadgen.CapacityOptions{o.Of(sides[0]), o.Of(sides[1])}
	} else {
		var err error
		if searches[0].Scenario, err = o.Read(o.Overrides); err != nil {
			return err
		}
	}
	var all []loadgen.CapacityPreview
	for _, search := range searches {
		p, err := loadgen.CapacityDryRun(cmd.Context(), search)
		if err != nil {
			return err
		}
		all = append(all, p)
	}
	w := cmd.OutOrStdout()
	return output.Write(w, all, func() error {
		for i, p := range all {
			if len(all) > 1 {
				fmt.Fprintf(w, "%s%c: ", strings.Repeat("\n", i), 'A'+i)
			}
			if err := p.WriteText(w); err != nil {
				return err
			}
		}
		return nil
	})
}
