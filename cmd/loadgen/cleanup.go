package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stormglass/stormglass/loadgen"
)

func newCleanup() *cobra.Command {
	var runID string
	var kubeconfig kubeconfigFlags
	var at loadgen.Kubeconfig
	var yes bool
	cmd := &cobra.Command{
		Use:   "cleanup",
		Short: "Remove what runs left behind in your cluster",
		Long: `Remove what interrupted or killed runs left behind in your cluster: namespaces,
simulated nodes and their leases, certificate requests and RBAC objects, found
by their labels alone. Nothing else is touched. What cannot be removed is tried
again for 5 minutes, or until Ctrl-C. Tokens that killed runs left in this
machine's directory for temporary files go too; every run removes those first.`,
		Example: `  loadgen cleanup --kubeconfig ~/.kube/config
  loadgen cleanup --kubeconfig ~/.kube/config --run 3f9a1c20b4 --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if at.Files == "" && !kubeconfig.current {
				return loadgen.Usage(fmt.Errorf("--kubeconfig is missing (a bundled plane needs no cleanup: it goes with its run)"))
			}
			if err := kubeconfig.into(cmd, &at); err != nil {
				return err
			}
			if wrong := validation.IsValidLabelValue(runID); len(wrong) > 0 {
				return loadgen.Usage(fmt.Errorf("--run %q is no id of a run (it is the value of the label %s on what the run left)", runID, loadgen.RunLabel))
			}
			ui := newTUI(cmd)
			for _, path := range loadgen.Sweep() {
				ui.Step(fmt.Sprintf("removed %s from this machine, which a killed run left", path))
			}
			cfg, name, err := loadgen.Reach(cmd.Context(), at, ui.Step)
			if err != nil {
				return errors.Join(err, cmd.Context().Err())
			}
			what := "every run"
			if runID != "" {
				what = "run " + runID
			}
			ok, err := ui.confirm(cmd.Context(), cmd.InOrStdin(), fmt.Sprintf("Remove what %s left in cluster %s (%s), by label.", what, name, cfg.Host), yes)
			if err != nil {
				return err
			}
			if !ok {
				return loadgen.Usage(fmt.Errorf("nothing was removed"))
			}
			removed, err := loadgen.Cleanup(cmd.Context(), cfg, runID, ui.Step)
			if err == nil || removed.Any() {
				fmt.Fprintln(cmd.OutOrStdout(), removed)
			}
			return err
		},
	}
	kubeconfig.add(cmd.Flags(), &at)
	cmd.Flags().Lookup("kubeconfig").Usage = "`file` that names your cluster"
	cmd.Flags().StringVar(&runID, "run", "", "only what the run of this `id` left (default: every run)")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return cmd
}
