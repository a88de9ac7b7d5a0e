package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/ab"
	"github.com/stormglass/stormglass/loadgen/internal/capacity"
	"github.com/stormglass/stormglass/loadgen/internal/run"
)

// preview shows what a run would do. It returns an error if the run would not start.
func preview(cmd *cobra.Command, o run.Options, variant string, output *commandline.Output) error {
	if variant == "all" {
		return exitcode.Usagef("--dry-run can show only one variant (add --variant NAME)")
	}
	p, err := run.DryRun(cmd.Context(), o)
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	if err := output.Write(w, p, func() error { return p.WriteText(w) }); err != nil {
		return err
	}
	return exitcode.EnvironmentError(p.Refused())
}

// previewAB shows what the runs of A and of B would do.
func previewAB(cmd *cobra.Command, o ab.Options, output *commandline.Output) error {
	p, err := ab.DryRun(cmd.Context(), o)
	if err != nil {
		return err
	}
	w := cmd.OutOrStdout()
	return output.Write(w, p, func() error { return p.WriteText(w) })
}

// withoutRevisions removes the specs that name Git revisions, because a preview does not build these revisions.
func withoutRevisions(specs []string) []string {
	return slices.DeleteFunc(slices.Clone(specs), func(spec string) bool { return strings.HasPrefix(spec, "rev=") })
}

// previewCapacity shows what a trial at the highest load would do. If b is not empty, it shows one trial for each of the
// two sides.
func previewCapacity(cmd *cobra.Command, o capacity.RunOptions, a, b []string, output *commandline.Output) error {
	searches := []capacity.RunOptions{o}
	if len(b) > 0 {
		sides, err := searchedSides(cmd.Context(), o, withoutRevisions(a), withoutRevisions(b))
		if err != nil {
			return err
		}
		searches = []capacity.RunOptions{sideOptions(o, sides[0]), sideOptions(o, sides[1])}
	} else {
		var err error
		if searches[0].Scenario, err = o.Read(o.Overrides); err != nil {
			return err
		}
	}
	var all []capacity.Preview
	for _, search := range searches {
		p, err := capacity.DryRun(cmd.Context(), search)
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
