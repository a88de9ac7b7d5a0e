package cli

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/alerts/render"
	"github.com/stormglass/stormglass/internal/exitcode"
)

func newRender() *cobra.Command {
	var o render.Options
	var out, preset string
	var production bool
	cmd := &cobra.Command{
		Use:   "render --out DIR",
		Short: "Write the rules and dashboards with the job names of your Prometheus",
		Long: `Write the built-in rules and dashboards for your own Prometheus, with its job names
and cluster label. The default job names are those in the Helm chart
kube-prometheus-stack. The command writes these files to the directory --out:

  rules/*.yaml         rule files for any Prometheus, Mimir or Thanos
  dashboards/*.json    for Grafana's import or provisioning
  kubernetes/          PrometheusRules, and ConfigMaps with the dashboards. To create them:
                       kubectl apply --server-side -k DIR/kubernetes
  mixin/               a monitoring mixin: mixin.libsonnet, and the compiled files

Each alert has its runbook in the annotations runbook (the text) and runbook_url (the
page).

--preset sets all job names:

  kube-prometheus-stack          the Helm chart of this name
  kube-prometheus-stack-managed  the same, but only the API server (managed clusters)
  prometheus                     the Helm chart prometheus-community/prometheus, which
                                 scrapes only the API server
  stormglass                     the names that 'loadgen observe' and kubernetes-mixin use

--job changes single names. An empty job name leaves out the component, and the rules,
panels and dashboards that are only about it.`,
		Example: `  loadgen alerts render --out monitoring --production
  loadgen alerts render --out monitoring --preset stormglass --job kube-apiserver=kubernetes-apiservers --cluster-label k8s_cluster
  loadgen alerts render --out eks --production --preset kube-prometheus-stack-managed --selector 'cluster="prod"'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return exitcode.Usagef("--out is missing (specify a new directory for the files)")
			}
			jobs, err := render.Preset(preset)
			if err != nil {
				return exitcode.Usagef("--%w", err)
			}
			if production {
				jobs[render.Generator] = ""
			}
			maps.Copy(jobs, o.Jobs)
			o.Jobs = jobs
			bundle, err := render.Render(o)
			if err != nil {
				return exitcode.Usagef("render: %w", err)
			}
			if err := writeBundle(out, bundle); err != nil {
				return err
			}
			say := sayTo(cmd.OutOrStdout())
			say("%d files in %s", len(bundle.Files), out)
			if len(bundle.LeftOut) > 0 {
				say("left out: %s", strings.Join(bundle.LeftOut, ", "))
			}
			return nil
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&out, "out", "", "new `directory` for the files")
	flags.StringVar(&preset, "preset", render.DefaultPreset, "`name` of a set of job names (see above): "+strings.Join(render.Presets(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("preset", cobra.FixedCompletions(render.Presets(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	flags.StringToStringVar(&o.Jobs, "job", nil, "job name of a component: `COMPONENT=JOB`, for example kube-apiserver=apiserver; an empty job name leaves the component out (repeatable; default: from --preset)")
	flags.Lookup("job").DefValue = ""
	flags.StringVar(&o.ClusterLabel, "cluster-label", "cluster", "`label` that identifies the cluster")
	flags.StringVar(&o.Selector, "selector", "", "label `matchers` to add to each selector of scraped series, for example 'tier=\"prod\"'")
	flags.BoolVar(&production, "production", false, "leave out the rules, panels and dashboards of the load generator")
	flags.StringVar(&o.RunbookBase, "runbook-base", alerts.Pages, "`URL` of the docs folder with the runbooks, used in runbook_url")
	flags.StringVar(&o.Namespace, "namespace", "monitoring", "`namespace` of the objects in kubernetes/")
	flags.StringVar(&o.Release, "release", "kube-prometheus-stack", "value of the label `release` of the objects in kubernetes/, by which the Prometheus operator selects rules")
	return cmd
}

// writeBundle writes files into a directory. The directory must be new or empty, because Prometheus would also load the
// files of an earlier bundle.
func writeBundle(dir string, b render.Bundle) error {
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0:
		return exitcode.Usagef("--out %s: the directory is not empty (choose a new directory)", dir)
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return exitcode.Usagef("--out: %w (name a directory that can be created)", err)
	}
	for _, name := range slices.Sorted(maps.Keys(b.Files)) {
		path := filepath.Join(dir, filepath.FromSlash(name))
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, b.Files[name], 0o644)
		}
		if err != nil {
			return exitcode.Usagef("--out: %w (name a writable directory)", err)
		}
	}
	return nil
}
