package cli

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/prometheus/common/model"
	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/runs/prune"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

func newPrune() *cobra.Command {
	var c prune.Criteria
	var labels labelFlag
	var dryRun bool
	var output *commandline.Output
	cmd := &cobra.Command{
		Use:   "prune FOLDER...",
		Short: "Remove old runs from folders, or reduce them to their results",
		Long: `Remove runs from folders such as ./runs. At least one criterion is required. If you set
several criteria, the command removes only runs that meet all of them, the oldest
first. It does not ask. For example, --older-than 30d --keep 5 removes the runs older
than 30 days, except the newest 5 of these for each scenario and folder.

A comparison or a search with all its runs counts as one run. The exit code of the
comparison or search determines the verdict: 0 is pass, 1 is fail, other codes are "no
data". A run is "interrupted" if it was stopped or killed before its end, and also "not
judged" if it wrote no result.

The command leaves these entries alone, and lists them: active runs, baselines,
damaged runs, runs with files that a run does not write, runs with objects in your
cluster, and everything that is not a run. It does not follow symbolic links.

With --reduce, the command keeps the results and report of a run, and removes its
metrics, traces, profiles and the files of its control plane. A reduced run can be
compared, but 'loadgen report' cannot judge it again.

With --downsample, the command keeps the metrics too, with one sample per interval and
series. 'loadgen query', 'export', 'serve' and 'report --charts' still show them. Rules
and gates are not evaluated on them.

The command renames a directory to .pruned-NAME before it removes it. If it is
interrupted, the next 'loadgen prune' removes the rest.`,
		Example: `  loadgen prune runs --older-than 30d --keep 5 --dry-run
  loadgen prune runs --max-size 20GB --reduce
  loadgen prune runs --older-than 2w --downsample 1m
  loadgen prune runs --verdict "no data" --label team=core`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if err := labels.into(&c.Labels); err != nil {
				return err
			}
			if err := checkPrune(cmd, c); err != nil {
				return err
			}
			all, err := prune.Scan(args)
			if err != nil {
				return err
			}
			p := pruned{DryRun: dryRun, Entries: prune.Plan(all, c, time.Now())}
			if !dryRun {
				err = prune.Apply(cmd.Context(), p.Entries, time.Now())
			}
			for _, d := range p.Entries {
				p.Freed += d.Frees
			}
			w := cmd.OutOrStdout()
			return errors.Join(output.Write(w, p, func() error { return p.write(w) }), err)
		},
	}
	flags := cmd.Flags()
	flags.Var((*age)(&c.OlderThan), "older-than", "select runs that started longer ago than this `time`, for example 30d, 2w or 12h")
	flags.IntVar(&c.Keep, "keep", 0, "of the runs that meet --older-than, --verdict and --label, keep the newest `number` for each scenario and folder")
	flags.Var((*byteSize)(&c.MaxSize), "max-size", "remove runs until the runs of each folder take at most this `size`, for example 20GB")
	flags.StringSliceVar(&c.Verdicts, "verdict", nil, "select runs with one of these `verdicts`, separated by commas: "+strings.Join(prune.Verdicts(), ", "))
	flags.StringArrayVar((*[]string)(&labels), "label", nil, "select runs with the label `NAME=VALUE` (repeatable; a run must have all labels)")
	commandline.Heading(flags, "Criteria")
	flags.BoolVar(&c.Reduce, "reduce", false, "keep the results and reports of the runs, and remove the rest")
	flags.DurationVar(&c.Downsample, "downsample", 0, "like --reduce, but keep one sample of each series per `interval`, from 10s to 1h")
	flags.BoolVar(&dryRun, "dry-run", false, "print what would be removed, but remove nothing")
	output = commandline.AddOutput(cmd)
	return cmd
}

func checkPrune(cmd *cobra.Command, c prune.Criteria) error {
	if cmd.Flags().Changed("keep") && c.Keep < 1 {
		return exitcode.Usagef("--keep %d is out of bounds (keep at least 1 run)", c.Keep)
	}
	switch changed := cmd.Flags().Changed("downsample"); {
	case changed && c.Reduce:
		return exitcode.Usagef("--reduce and --downsample cannot be used together (--reduce removes the metrics)")
	case changed && (c.Downsample < 10*time.Second || c.Downsample > time.Hour):
		return exitcode.Usagef("--downsample %s is out of bounds (from 10s to 1h between two samples)", model.Duration(c.Downsample))
	}
	for _, v := range c.Verdicts {
		if !slices.Contains(prune.Verdicts(), v) {
			return exitcode.Usagef("--verdict %q is unknown (%s)", v, strings.Join(prune.Verdicts(), ", "))
		}
	}
	if c.Empty() {
		return exitcode.Usagef("the command needs a criterion (add --older-than, --keep, --max-size, --verdict or --label)")
	}
	return nil
}

// pruned is the output of the command prune.
type pruned struct {
	DryRun  bool             `json:"dryRun"`
	Freed   int64            `json:"freedBytes"` // with DryRun, the maximum number of bytes that would be freed
	Entries []prune.Decision `json:"entries"`
}

func (p pruned) write(w io.Writer) error {
	said := map[prune.Action]string{prune.Remove: "removed", prune.Reduce: "reduced", prune.Downsample: "downsampled", prune.Resume: "finished", prune.LeaveAlone: "left alone"}
	freed := "freed"
	if p.DryRun {
		said[prune.Remove], said[prune.Reduce], said[prune.Downsample], said[prune.Resume] = "would remove", "would reduce", "would downsample", "would finish"
		freed = "would free"
	}
	count, coarse := map[prune.Action]int{}, 0
	tab := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, d := range p.Entries {
		count[d.Action]++
		if d.Action == prune.Keep {
			if d.Coarse {
				coarse++
			}
			continue
		}
		size := "-"
		if d.Frees > 0 {
			size = prune.Size(d.Frees)
		}
		if p.DryRun && (d.Action == prune.Downsample || d.Action == prune.Resume) {
			size, freed = "at most "+size, "would free at most"
		}
		fmt.Fprintf(tab, "%s\t%s\t%s\t%s\n", said[d.Action], terminal.Clean(filepath.Join(d.Folder, d.Name)), size, terminal.Clean(d.Why))
	}
	if err := tab.Flush(); err != nil {
		return err
	}
	kept := fmt.Sprintf("%d kept", count[prune.Keep])
	if coarse > 0 {
		kept += fmt.Sprintf(" (%d already as coarse)", coarse)
	}
	_, err := fmt.Fprintf(w, "%s %s in %d of %d entries; %s, %d left alone\n", freed, prune.Size(p.Freed),
		len(p.Entries)-count[prune.Keep]-count[prune.LeaveAlone], len(p.Entries), kept, count[prune.LeaveAlone])
	return err
}

// age is a flag value: a duration that may have days and weeks.
type age time.Duration

func (a *age) Type() string { return "age" }

func (a *age) String() string {
	if *a == 0 {
		return ""
	}
	return model.Duration(*a).String()
}

func (a *age) Set(text string) error {
	d, err := model.ParseDuration(text)
	if err != nil || d <= 0 {
		return errors.New("is not a time (write 30d, 2w or 12h)")
	}
	*a = age(d)
	return nil
}

// byteSize is a flag value: a number of bytes above 0, written as 20GB.
type byteSize scenario.Bytes

func (b *byteSize) Type() string { return "size" }

func (b *byteSize) String() string {
	if *b == 0 {
		return ""
	}
	return prune.Size(int64(*b))
}

func (b *byteSize) Set(text string) error {
	if err := (*scenario.Bytes)(b).UnmarshalText([]byte(text)); err != nil || *b <= 0 {
		return errors.New("is not a size (write 500MB or 20GB)")
	}
	return nil
}
