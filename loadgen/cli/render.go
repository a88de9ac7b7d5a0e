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
		Short: "Write rules and dashboards for a Prometheus with different job names",
		Long: `Write the built-in rules and dashboards for your own Prometheus: with its job names,
its label for the cluster, and additional matchers in each selector. Without flags, the
jobs have the names of the Helm chart kube-prometheus-stack. DIR contains

  rules/*.yaml         rule files for any Prometheus, Mimir or Thanos
  dashboards/*.json    for Grafana's import or provisioning
  kubernetes/          PrometheusRules, and labelled ConfigMaps of the dashboards:
                       kubectl apply --server-side -k DIR/kubernetes
  mixin/               a monitoring mixin: mixin.libsonnet, and the compiled files

Each alert has two annotations: runbook (the text) and runbook_url (the page). A
component with an empty job is left out, with the rules, panels and dashboards that are
only about it. Do this for the etcd, scheduler and controller manager of a managed
control plane. --production leaves out the load generator. --preset sets the job names
of an installation; --job changes some of them.`,
		Example: `  loadgen alerts render --out monitoring --production
  loadgen alerts render --out monitoring --preset stormglass --job kube-apiserver=kubernetes-apiservers --cluster-label k8s_cluster
  loadgen alerts render --out eks --production --preset kube-prometheus-stack-managed --selector 'cluster="prod"'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if out == "" {
				return exitcode.Usagef("--out is missing (name a new directory for the files)")
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
	flags.StringVar(&preset, "preset", render.DefaultPreset, "`name` of the installation whose job names to use: "+strings.Join(render.Presets(), ", "))
	_ = cmd.RegisterFlagCompletionFunc("preset", cobra.FixedCompletions(render.Presets(), cobra.ShellCompDirectiveNoFileComp)) // the flag exists
	flags.StringToStringVar(&o.Jobs, "job", nil, "name of a component's `job`, for example kube-apiserver=apiserver; an empty name leaves the component out (repeatable; default: the name in the preset)")
	flags.Lookup("job").DefValue = ""
	flags.StringVar(&o.ClusterLabel, "cluster-label", "cluster", "`label` that distinguishes clusters")
	flags.StringVar(&o.Selector, "selector", "", "additional `matchers` for each selector of a scraped series, for example 'tier=\"prod\"'")
	flags.BoolVar(&production, "production", false, "leave out rules, panels and dashboards that are only about the load generator")
	flags.StringVar(&o.RunbookBase, "runbook-base", alerts.Pages, "`URL` of the docs folder with the runbooks, used in runbook_url")
	flags.StringVar(&o.Namespace, "namespace", "monitoring", "`namespace` of the objects for Kubernetes")
	flags.StringVar(&o.Release, "release", "kube-prometheus-stack", "value of the label `release` of these objects, by which the Prometheus operator selects rules")
	return cmd
}

// writeBundle writes files into a directory. The directory must be new or empty, because Prometheus would also load the
// files of an earlier bundle.
func writeBundle(dir string, b render.Bundle) error {
	entries, err := os.ReadDir(dir)
	switch {
	case err == nil && len(entries) > 0:
		return exitcode.Usagef("--out %s: the directory is not empty (name a new one)", dir)
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
			return exitcode.Usagef("--out: %w (name a directory that can be written)", err)
		}
	}
	return nil
}
