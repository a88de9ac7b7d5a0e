package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/digits"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/importer"
)

func newImport() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "import",
		Short: "Convert another tool's configuration to a scenario",
		Long: `Convert a configuration of kube-burner, ClusterLoader2 or KWOK to a scenario. The
scenario is written to standard output with its templates inline, or with --out
NAME.yaml to a file, with its templates in NAME-templates.

The result is a valid scenario. A comment NOT CARRIED OVER replaces each part that
could not be converted, and standard error lists these parts. A table then compares the
configuration with the scenario; --quiet hides it. Read the comments before you run the
scenario.

If a whole job, phase, measurement or Stage is left out, the last line names it and the
exit code is 5, or 0 with --partial.`,
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
	values  []string // paths of the files with template values
	options importer.Options
}

func (f *importFlags) add(cmd *cobra.Command, nodes string) {
	flags := cmd.Flags()
	flags.StringVar(&f.out, "out", "", "new `file` for the scenario, with its templates next to it (default: standard output, with the templates inline)")
	flags.BoolVar(&f.partial, "partial", false, "exit with 0 even if a job, phase, measurement or Stage is left out")
	flags.IntVar(&f.options.Nodes, "nodes", 0, "`number` of simulated nodes (default"+nodes+")")
}

func (f *importFlags) addCluster(cmd *cobra.Command) {
	cmd.Flags().BoolVar(&f.options.StubCRDs, "stub-crds", false, "add the definitions (CRDs) of custom resources to the scenario, without schemas and controllers")
	cmd.Flags().BoolVar(&f.options.OwnCluster, "own-cluster", false, "convert for a run on your own cluster: without simulated nodes, and without node selectors for them")
}

func (f *importFlags) convert(cmd *cobra.Command, fractions bool, do func(importer.Options) (*importer.Result, error)) error {
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
	values, err := importer.ParseValues(f.sets, fractions)
	if err != nil {
		return exitcode.UsageError(err)
	}
	maps.Copy(o.Values, values)
	if f.out != "" {
		o.Templates = strings.TrimSuffix(filepath.Base(f.out), filepath.Ext(f.out)) + "-templates"
	}
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
	if err := comparison(progressTo(cmd), r.Summary); err != nil {
		return err
	}
	last := fmt.Sprintf("%s: %d of %d parts were imported completely, %s", cmp.Or(f.out, r.Name), r.Whole, r.Items, digits.Count(len(r.Remarks), "remark"))
	if len(r.Lost) > 0 {
		last += "; left out: " + strings.Join(r.Lost, ", ")
	}
	say("%s", last)
	if len(r.Lost) > 0 && !f.partial {
		return verdictError(exitcode.Partial)
	}
	return nil
}

// comparison writes the table that compares the configuration with the scenario.
func comparison(w io.Writer, rows []importer.Row) error {
	if len(rows) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "PART\t\tORIGINAL\tSCENARIO")
	for _, r := range rows {
		if r.Scenario == r.Original {
			r.Scenario = "same"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", terminal.Clean(r.Part), r.What, terminal.Clean(r.Original), terminal.Clean(r.Scenario))
	}
	return t.Flush()
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
			return exitcode.Usagef("--out %s: %s already exists (delete it, or name another file)", f.out, path)
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
		Short: "Convert a configuration of kube-burner",
		Long: `Convert a configuration of kube-burner: a file, or a directory that contains one. Its
parts become these parts of the scenario:

  jobs that create objects           loads of kind "objects" at the job's qps, then
                                     conditions to wait for
  jobs that delete or patch          actions
  thresholds and alert profiles      gates
  metric profiles                    metrics in the section compare

If the configuration is a template, its values come from --set and --user-data.
Environment variables are ignored.`,
		Example: `  loadgen import kube-burner kubelet-density/kubelet-density.yml > mine.yaml
  loadgen import kube-burner api-intensive --out mine.yaml
  loadgen import kube-burner workload.yml --set JOB_ITERATIONS=50 --user-data values.yml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.convert(cmd, false, func(o importer.Options) (*importer.Result, error) { return importer.KubeBurner(args[0], o) })
		},
	}
	f.add(cmd, ": what the pods need")
	f.addCluster(cmd)
	flags := cmd.Flags()
	flags.StringArrayVar(&f.sets, "set", nil, "template value: `NAME=VALUE`; NAME= sets an empty value (repeatable)")
	flags.StringArrayVar(&f.values, "user-data", nil, "`file` of template values in YAML or JSON (repeatable)")
	flags.StringArrayVar(&f.options.Alerts, "alert-profile", nil, "`file` of an additional alert profile (repeatable)")
	flags.StringArrayVar(&f.options.Metrics, "metrics-profile", nil, "`file` of an additional metrics profile (repeatable)")
	return cmd
}

func newImportClusterLoader() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "clusterloader2 FILE",
		Short: "Convert a test of ClusterLoader2",
		Long: `Convert a test of ClusterLoader2 with its modules. Its parts become these parts of the
scenario:

  phases that create objects         loads of kind "objects" at the tuning set's rate
  other phases                       actions
  measurements                       conditions to wait for, gates, or metrics

--nodes sets .Nodes in the test's template and the number of simulated nodes.`,
		Example: `  loadgen import clusterloader2 testing/density/config.yaml --nodes 50 > density.yaml
  loadgen import clusterloader2 testing/load/config.yaml --set CL2_LOAD_TEST_THROUGHPUT=20 --out load.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.convert(cmd, true, func(o importer.Options) (*importer.Result, error) {
				return importer.ClusterLoader2(args[0], o)
			})
		},
	}
	f.add(cmd, " 100")
	f.addCluster(cmd)
	cmd.Flags().StringArrayVar(&f.sets, "set", nil, "template value: `NAME=VALUE` (repeatable)")
	cmd.Flags().StringArrayVar(&f.values, "testoverrides", nil, "`file` of template values (repeatable)")
	return cmd
}

func newImportKwok() *cobra.Command {
	var f importFlags
	cmd := &cobra.Command{
		Use:   "kwok STAGES...",
		Short: "Convert KWOK Stages to a lifecycle of pods on simulated nodes",
		Long: `Convert Stages of KWOK from files or directories of files. Stages of pods become the
fields nodes.podStart and nodes.podLives. Stages of nodes become nodes.statusReport.
The scenario has one phase; add load to it.`,
		Example: `  loadgen import kwok kustomize/stage/pod/general kustomize/stage/node/heartbeat > mine.yaml`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.convert(cmd, false, func(o importer.Options) (*importer.Result, error) { return importer.Kwok(args, o) })
		},
	}
	f.add(cmd, " 10")
	return cmd
}
