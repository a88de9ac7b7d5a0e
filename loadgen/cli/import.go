package cli

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/importer"
)

func newImport() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Make a scenario from another tool's configuration",
		Long: `Make a scenario from another tool's configuration: kube-burner, ClusterLoader2 or
KWOK. The scenario is written to standard output, including its templates, or with
--out to a file, with the templates next to it.

Each part that could not be imported is replaced by a comment that begins with
NOT CARRIED OVER, and is reported on standard error. The scenario is valid; read the
comments before you run it.

If a whole job, phase, measurement or Stage is left out, the last line names it and the
exit code is 5. --partial accepts this.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newImportKubeBurner(), newImportClusterLoader(), newImportKwok())
	return cmd
}

type importFlags struct {
	out     string
	partial bool
	sets    []string
	values  []string // files
	options importer.Options
}

func (f *importFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&f.out, "out", "", "`file` to write the scenario to, with its templates in a directory next to it (default: standard output, with the templates inline)")
	flags.BoolVar(&f.partial, "partial", false, "exit with 0 although a job, phase, measurement or Stage is left out")
	flags.IntVar(&f.options.Nodes, "nodes", 0, "`number` of simulated nodes")
}

func (f *importFlags) addCluster(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.options.OwnCluster, "own-cluster", false, "for a run on your own cluster: no simulated nodes, unchanged node selectors")
}

func (f *importFlags) convert(cmd *cobra.Command, typed bool, do func(importer.Options) (*importer.Result, error)) error {
	o := f.options
	if o.Nodes < 0 {
		return exitcode.Usagef("--nodes %d: must be 0 or greater", o.Nodes)
	}
	o.Values = map[string]any{}
	for _, file := range f.values {
		data, err := userfile.Read(file, userfile.Text)
		if err != nil {
			return exitcode.Usagef("%s: cannot read it: %w", file, err)
		}
		values, err := importer.ReadOverrides(file, data)
		if err != nil {
			return exitcode.UsageError(err)
		}
		maps.Copy(o.Values, values)
	}
	values, err := importer.ParseValues(f.sets, typed)
	if err != nil {
		return exitcode.UsageError(err)
	}
	maps.Copy(o.Values, values)
	o.Beside = f.out != ""
	r, err := do(o)
	if err != nil {
		return exitcode.UsageError(err)
	}
	if err := f.write(cmd, r); err != nil {
		return err
	}
	say := sayTo(cmd.ErrOrStderr())
	for _, remark := range r.Remarks {
		say("%s", remark)
	}
	last := fmt.Sprintf("%s: %d of %d parts were imported completely, %s", cmp.Or(f.out, r.Name), r.Whole, r.Items, counted(len(r.Remarks), "remark"))
	if len(r.Lost) > 0 {
		last += "; left out: " + strings.Join(r.Lost, ", ")
	}
	say("%s", last)
	if len(r.Lost) > 0 && !f.partial {
		return verdictError(exitcode.Partial)
	}
	return nil
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// write writes the scenario to standard output, or writes it and its templates to new files.
func (f *importFlags) write(cmd *cobra.Command, r *importer.Result) error {
	if f.out == "" {
		_, err := cmd.OutOrStdout().Write(r.Scenario)
		return err
	}
	files := append(r.Files, importer.File{Name: filepath.Base(f.out), Data: r.Scenario})
	for _, file := range files {
		path := filepath.Join(filepath.Dir(f.out), file.Name)
		if _, err := os.Lstat(path); err == nil {
			return exitcode.Usagef("--out %s: %s already exists (name another file)", f.out, path)
		}
	}
	for _, file := range files {
		path := filepath.Join(filepath.Dir(f.out), file.Name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err = errors.Join(err, os.WriteFile(path, file.Data, 0o644)); err != nil {
			return exitcode.Usagef("--out %s: cannot write %s: %w", f.out, path, userfile.Cause(err))
		}
	}
	return nil
}

func newImportKubeBurner() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "kube-burner FILE|DIR",
		Short: "Import a configuration of kube-burner",
		Long: `Import a configuration of kube-burner: a file, or a directory that contains one. Jobs that
create objects become loads of kind "objects" at the job's qps, followed by waits; jobs
that delete or patch become actions; thresholds and alert profiles become gates; metric
profiles become figures under compare.

If the configuration is a template, its values come from --set and --user-data, never
from the environment.`,
		Example: `  loadgen import kube-burner kubelet-density/kubelet-density.yml > mine.yaml
  loadgen import kube-burner api-intensive --out mine.yaml
  loadgen import kube-burner workload.yml --set JOB_ITERATIONS=50 --user-data values.yml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.convert(cmd, false, func(o importer.Options) (*importer.Result, error) { return importer.KubeBurner(args[0], o) })
		},
	}
	f.add(cmd)
	f.addCluster(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.sets, "set", nil, "value for the configuration's template, as `NAME=VALUE`; NAME= sets an empty value (repeatable)")
	flags.StringArrayVar(&f.values, "user-data", nil, "`file` of values in YAML or JSON (repeatable)")
	flags.StringArrayVar(&f.options.Alerts, "alert-profile", nil, "`file` of an additional alert profile (repeatable)")
	flags.StringArrayVar(&f.options.Metrics, "metrics-profile", nil, "`file` of an additional metrics profile (repeatable)")
	return cmd
}

func newImportClusterLoader() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "clusterloader2 FILE",
		Short: "Import a test of ClusterLoader2",
		Long: `Import a test of ClusterLoader2 with its modules. Phases that create objects become
loads of kind "objects", at the rates of their tuning sets; other phases become actions;
measurements become waits, transitions and gates.

--nodes is the value of .Nodes in the test's template (default 100), and the number
of simulated nodes.`,
		Example: `  loadgen import clusterloader2 testing/density/config.yaml --nodes 50 > density.yaml
  loadgen import clusterloader2 testing/load/config.yaml --set CL2_LOAD_TEST_THROUGHPUT=20 --out load.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.convert(cmd, true, func(o importer.Options) (*importer.Result, error) {
				return importer.ClusterLoader2(args[0], o)
			})
		},
	}
	f.add(cmd)
	f.addCluster(cmd)
	cmd.Flags().StringArrayVar(&f.sets, "set", nil, "value of the test's template, as `NAME=VALUE` (repeatable)")
	cmd.Flags().StringArrayVar(&f.values, "testoverrides", nil, "`file` of values (repeatable)")
	return cmd
}

func newImportKwok() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "kwok STAGES...",
		Short: "Import KWOK Stages as the lifecycle of pods on simulated nodes",
		Long: `Import Stages of KWOK: files, or directories of files. Stages of pods become
nodes.podStart and nodes.podLives; Stages of nodes become nodes.statusReport. The
scenario has one phase, to which you add load.`,
		Example: `  loadgen import kwok kustomize/stage/pod/general kustomize/stage/node/heartbeat > mine.yaml`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.convert(cmd, false, func(o importer.Options) (*importer.Result, error) { return importer.Kwok(args, o) })
		},
	}
	f.add(cmd)
	return cmd
}
