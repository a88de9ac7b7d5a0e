package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/judge"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
)

func newGate() *cobra.Command {
	var criteria judge.Criteria
	var junit, page string
	var output *commandline.Output
	var sum summary
	cmd := &cobra.Command{
		Use:   "gate DIR --rules FILE",
		Short: "Check a recorded run against other gates",
		Long: `Check a recorded run against gates or Prometheus rules that are not in its scenario.
The run's directory is not changed. --rules names a file of gates, or a file or
directory of Prometheus rules or PrometheusRule objects.

A file of gates has the same format as in a scenario. An objective is a built-in metric
(docs/reference/objectives.md), and over selects phases:

  gates:
    - {name: api, objective: mutating-latency, max: 1s}
    - {name: disk, alert: EtcdWALFsyncSlow, fires: false, over: [steady]}

The rules are evaluated over the recorded metrics, at the interval of their group
(default: once a minute). The output lists each alert: fired, pending (active for less
than its "for"), silent, or no data. Without a file of gates, no alert may fire in any
phase. With a file of gates, only alerts that a gate names affect the exit code.

--map job=apiserver:kube-apiserver replaces a label value in the rules. An empty new
value selects series without the label. If a rule selects a job that was not scraped,
and exactly one other job has the metric, the command uses and reports that job.

A gate or rule without data does not pass. It has no data, for example, if its metric
was not recorded, or if the phase ended before the first evaluation. The result is then
NO DATA, or TOO SHORT if the rule's "for", "offset" or "interval" is longer than the run
or phase.

--allow-no-data names gates and rules that may have no data. Their result is then
ALLOWED, and does not change the exit code. If no gate and no rule has data, the run
does not pass.`,
		Example: `  loadgen gate runs/20261121-101500-rollout-500 --rules gates.yaml
  loadgen gate runs/20261121-101500-rollout-500 --rules prometheus-rules.yaml --allow-no-data KubeAPIErrorBudgetBurn
  loadgen gate runs/20261121-101500-rollout-500 --rules kube-prometheus.yaml --rules gates.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := errors.Join(sum.check(), checkWritable("--junit", junit, `<testsuites name="stormglass"`), checkWritable("--html", page, `content="Stormglass"`)); err != nil {
				return err
			}
			if len(criteria.Files) == 0 {
				return exitcode.Usagef("--rules is missing (a file of gates or of Prometheus' rules; `loadgen report DIR` judges a run by its own gates)")
			}
			if rundir.IsComparison(args[0]) {
				return exitcode.Usagef("%s contains the runs of several variants (name the subdirectory of one variant)", args[0])
			}
			var html bytes.Buffer
			if page != "" {
				criteria.HTML = &html
			}
			res, err := criteria.Judge(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			err = errors.Join(
				writeOutput("--junit", junit, os.O_TRUNC, func(w io.Writer) error { return report.JUnit(w, res) }),
				writeOutput("--html", page, os.O_TRUNC, func(w io.Writer) error { _, err := html.WriteTo(w); return err }))
			if err != nil {
				return err
			}
			return after(sum, showReport(cmd.OutOrStdout(), output, res.ExitCode, res, report.Terminal, ""), res, report.Summary)
		},
	}
	cmd.Flags().StringArrayVar(&criteria.Files, "rules", nil, "`file` of gates, or file or directory of Prometheus rules (repeatable)")
	cmd.Flags().StringArrayVar(&criteria.Map, "map", nil, "replace the value of a label in the rules: `label=from:to` (repeatable)")
	cmd.Flags().StringArrayVar(&criteria.AllowNoData, "allow-no-data", nil, "`rule` or gate that may have no data (repeatable)")
	cmd.Flags().StringVar(&junit, "junit", "", "write the result as JUnit to this `file`; replaces an existing file only if this command wrote it")
	cmd.Flags().StringVar(&page, "html", "", "write the report with this result and a table of the alerts to this `file`; replaces an existing file only if this command wrote it")
	sum.flag(cmd)
	output = commandline.AddOutput(cmd)
	return cmd
}

// checkWritable returns an error if the file of a flag is not writable. It refuses an existing file, unless the text
// `mark` in the first kilobyte shows that the flag wrote the file earlier. It removes a file that it has created.
// Commands call it before they start their work.
func checkWritable(flag, file, mark string) error {
	if file == "" {
		return nil
	}
	info, missing := os.Stat(file)
	if missing == nil && info.Mode().IsRegular() && info.Size() > 0 {
		head, err := firstKilobyte(file)
		if err != nil {
			return exitcode.Usagef("%s: %w (name a writable file)", flag, err)
		}
		if !bytes.Contains(head, []byte(mark)) {
			return exitcode.Usagef("%s: %s exists, and loadgen did not write it with this flag (choose another file, or remove it)", flag, file)
		}
	}
	err := writeOutput(flag, file, 0, func(io.Writer) error { return nil })
	if err == nil && errors.Is(missing, fs.ErrNotExist) {
		err = os.Remove(file)
	}
	return err
}

func firstKilobyte(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 1<<10))
}

// writeOutput calls `write` with the file of a flag. It creates the file if necessary. If `file` is empty (the flag is
// not set), it does nothing.
func writeOutput(flag, file string, mode int, write func(io.Writer) error) error {
	if file == "" {
		return nil
	}
	f, err := openOutput(flag, file, mode|os.O_CREATE)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// openOutput opens the file of a flag for writing. If the file is a pipe without a reader, it returns an error instead of
// waiting. It does not create the missing target of a symbolic link.
func openOutput(flag, file string, mode int) (*os.File, error) {
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(file); err == nil {
			return nil, exitcode.Usagef("%s: %s is a symbolic link to a file that does not exist (choose another file, or remove the link)", flag, file)
		}
	}
	f, err := os.OpenFile(file, mode|os.O_WRONLY|syscall.O_NONBLOCK, 0o644)
	if errors.Is(err, syscall.ENXIO) {
		err = fmt.Errorf("no process reads from the pipe %s", file)
	}
	if err != nil {
		return nil, exitcode.Usagef("%s: %w (name a writable file)", flag, err)
	}
	return f, nil
}

// summary is the value of --summary: the file to which a command appends Markdown; empty means no file.
type summary struct{ file string }

func (s *summary) flag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.file, "summary", "", "append the result as Markdown to this `file`, for example \"$GITHUB_STEP_SUMMARY\"")
}

// check returns an error if the file is not writable. Call it before other work.
func (s summary) check() error { return s.write(func(io.Writer) error { return nil }) }

// after appends v to the summary. Call it after showing v. It returns `shown`: the exit code of the result, or the
// error that occurred when v was shown.
func after[T any](s summary, shown error, v T, write func(io.Writer, T) error) error {
	if err := s.write(func(w io.Writer) error { return write(w, v) }); err != nil {
		return err
	}
	return shown
}

func (s summary) write(write func(io.Writer) error) error {
	return writeOutput("--summary", s.file, os.O_APPEND, write)
}
