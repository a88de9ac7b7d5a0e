package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/runs"
	"github.com/stormglass/stormglass/loadgen/internal/runs/site"
)

func newPublish() *cobra.Command {
	var out, baseline string
	var sum summary
	var output *commandline.Output
	cmd := &cobra.Command{
		Use:   "publish DIR... --out DIR",
		Short: "Write web pages about recorded runs as files, for example for CI artifacts",
		Long: `Write the pages of 'loadgen serve' as files that need no server: the list of all runs,
the trends of their metrics and the report of each run. If there are only two to six
runs, all of one scenario, a page overlays them in the same charts. Each DIR is the
directory of a run, or a folder of such directories. Open index.html in the new
directory.

--summary appends the latest run of each scenario as Markdown: its verdict, its gates
and the diagnosed causes of a failure. With --baseline, the summary also compares each
value of the run with the mean and the range of the baseline's runs, and lists other
differences, for example in versions. The exit code does not depend on verdicts.`,
		Example: `  loadgen publish runs --out site
  loadgen publish runs/ci --out site --baseline baselines/main --summary "$GITHUB_STEP_SUMMARY"`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case out == "":
				return exitcode.Usagef("--out is missing (name a new directory for the pages)")
			case baseline != "" && sum.file == "":
				return exitcode.Usagef("--baseline requires --summary FILE, which shows the comparison (add --summary)")
			}
			if err := sum.check(); err != nil {
				return err
			}
			index, err := openIndex(args)
			if err != nil {
				return err
			}
			index.Scan(cmd.Context())
			var text bytes.Buffer
			if sum.file != "" {
				if text, err = newSummary(cmd.Context(), index, baseline); err != nil {
					return err
				}
			}
			p, err := site.Publish(cmd.Context(), index, out)
			if err != nil {
				return err
			}
			if err := sum.write(func(w io.Writer) error { _, err := text.WriteTo(w); return err }); err != nil {
				return err
			}
			return output.Write(cmd.OutOrStdout(), p, func() error {
				for _, note := range p.Notes {
					fmt.Fprintln(cmd.OutOrStdout(), terminal.Clean(note))
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "%s: %d entries, %.1f MB (open index.html in a browser)\n", terminal.Clean(p.Dir), p.Runs, float64(p.Bytes)/1e6)
				return err
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&out, "out", "", "new `directory` for the pages")
	flags.StringVar(&baseline, "baseline", "", "`directory` of a baseline, or of earlier runs of the same scenario, to compare with in the summary")
	sum.flag(cmd)
	output = commandline.AddOutput(cmd)
	return cmd
}

// newSummary returns a Markdown summary of the runs in an index. If baseline is set, it compares them with the runs in
// this directory.
func newSummary(ctx context.Context, index *runs.Index, baseline string) (text bytes.Buffer, err error) {
	var known *runs.Index
	if baseline != "" {
		if known, err = openIndex([]string{baseline}); err != nil {
			return text, err
		}
		known.Scan(ctx)
	}
	s, err := site.NewSummary(index, known)
	if err != nil {
		return text, err
	}
	return text, s.Write(&text)
}
