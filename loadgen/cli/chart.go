package cli

import (
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/judge"
	"github.com/stormglass/stormglass/loadgen/internal/report"
)

type chart struct {
	list bool
	name string
	file string
}

func (c *chart) flags(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&c.list, "charts", false, "list the names of the report's charts")
	cmd.Flags().StringVar(&c.name, "chart", "", "write the chart with this `name` as a standalone SVG")
	cmd.Flags().StringVar(&c.file, "svg", "", "`file` for --chart (default: standard output); replaces an existing file only if this command wrote it")
}

func (c *chart) check(cmd *cobra.Command) error {
	switch {
	case c.list && c.name != "":
		return exitcode.Usagef("--charts and --chart cannot be used together (--charts lists the names for --chart)")
	case c.file != "" && c.name == "":
		return exitcode.Usagef("--svg %s requires a chart (add --chart NAME; --charts lists them)", c.file)
	case c.requested() && cmd.Flags().Changed("summary"):
		return exitcode.Usagef("--summary does not apply to charts, which have no verdict (leave out --summary, or leave out --charts and --chart)")
	case c.name != "" && cmd.Flags().Changed("output"):
		return exitcode.Usagef("--output does not apply to --chart, which writes an SVG (leave out --output; to write the chart to a file, add --svg FILE)")
	}
	return nil
}

func (c *chart) requested() bool { return c.list || c.name != "" }

func (c *chart) run(cmd *cobra.Command, dir string, output *commandline.Output) error {
	if c.list {
		all, err := judge.Pictures(cmd.Context(), dir)
		if err != nil {
			return err
		}
		w := cmd.OutOrStdout()
		return output.Write(w, all, func() error { return listCharts(w, all) })
	}
	if err := checkWritable("--svg", c.file, `aria-labelledby="title summary"`); err != nil {
		return err
	}
	p, err := judge.Picture(cmd.Context(), dir, c.name)
	if err != nil {
		return err
	}
	svg := p.SVG()
	if c.file == "" {
		_, err := cmd.OutOrStdout().Write(svg)
		return err
	}
	return writeOutput("--svg", c.file, os.O_TRUNC, func(w io.Writer) error {
		_, err := w.Write(svg)
		return err
	})
}

func listCharts(w io.Writer, all []report.Picture) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, p := range all {
		what := p.Title
		if p.Missing != "" {
			what += " (not drawn: " + p.Missing + ")"
		}
		fmt.Fprintf(t, "%s\t%s\n", p.Name, what)
	}
	return t.Flush()
}
