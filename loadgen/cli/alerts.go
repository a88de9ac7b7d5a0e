package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/shell"
	"github.com/stormglass/stormglass/loadgen/internal/alertproof"
	"github.com/stormglass/stormglass/loadgen/result"
)

func newAlerts() *cobra.Command {
	var output *commandline.Output
	cmd := &cobra.Command{
		Use:   "alerts",
		Short: "List the built-in alerts, test them, or write them for your Prometheus",
		Long: `List the built-in alerts. The column SMALLEST FAULT shows the smallest problem that
makes the alert fire. FIRES WITHIN is the calculated time from the beginning of this
problem until the alert fires, if scrapes are 5 s apart and on time. PROOF is the
scenario that tests the alert ('loadgen alerts prove'). -o json also prints the
expressions and runbooks.`,
		Example: `  loadgen alerts
  loadgen alerts -o json | jq -r '.[] | select(.severity == "critical") | .alert'
  loadgen alerts prove --rule EtcdWALFsyncSlow`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			all, err := alerts.Rules()
			if err != nil {
				return err
			}
			return listAlerts(cmd.OutOrStdout(), all, output)
		},
	}
	output = commandline.AddOutput(cmd)
	cmd.AddCommand(newProve(), newRender())
	return cmd
}

type listedAlert struct {
	Alert        string  `json:"alert"`
	Severity     string  `json:"severity"`
	Component    string  `json:"component"`
	Proof        string  `json:"proof"`
	FloorSeconds float64 `json:"floorSeconds"` // maximum time until the alert fires, if scrapes are 5 s apart
	Smallest     string  `json:"smallestFault"`
	Expr         string  `json:"expr"`
	ForSeconds   float64 `json:"forSeconds"`
	Runbook      string  `json:"runbook"`
}

func listAlerts(w io.Writer, all []alerts.Alert, output *commandline.Output) error {
	const scrape = 5 * time.Second
	var list []listedAlert
	for _, a := range all {
		list = append(list, listedAlert{
			Alert: a.Alert, Severity: a.Labels["severity"], Component: a.Labels["component"], Proof: a.Run, FloorSeconds: a.FiresWithin(scrape, 0).Seconds(),
			Smallest: a.Smallest, Expr: a.Expr, ForSeconds: time.Duration(a.For).Seconds(), Runbook: a.Annotations["runbook"],
		})
	}
	return output.Write(w, list, func() error {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "ALERT\tSEVERITY\tPROOF\tFIRES WITHIN\tSMALLEST FAULT")
		for _, a := range all {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", a.Alert, a.Labels["severity"], a.Run, a.FiresWithin(scrape, 0), a.Smallest)
		}
		return t.Flush()
	})
}

type proveOptions struct {
	rules, proofs     []string
	out, controlPlane string
	output            *commandline.Output
	summary           summary
}

func newProve() *cobra.Command {
	var p proveOptions
	cmd := &cobra.Command{
		Use:   "prove [DIR...]",
		Short: "Test the alerts: cause the problem of each alert, and check which alerts fire",
		Long: `Test the built-in alerts. A proof is a scenario of a few minutes that causes the
problems of some alerts on a new control plane. The command evaluates all rules over
the recorded metrics, with Prometheus' own code.

A proof passes if its alerts fire in time and resolve. In time means within 1.5 times
FIRES WITHIN of 'loadgen alerts', which allows for delays. Another alert may fire only
if it is a known consequence of the problem. Two proofs cause no problem: in their runs,
no alert may fire.

All proofs together take two hours. --rule and --proof select some of them. With DIR,
the command checks existing runs and starts none.

Exit codes:
  0  all proofs passed
  1  an alert was late, did not fire, or fired without a reason
  3  no verdict: a run was interrupted, has no data, or its load generator was too busy`,
		Example: `  loadgen alerts prove --rule EtcdWALFsyncSlow
  loadgen alerts prove --out proofs
  loadgen alerts prove proofs/* -o json | jq '.proofs[].outcomes[] | select(.fired)'`,
		RunE: func(cmd *cobra.Command, dirs []string) error {
			if err := p.summary.check(); err != nil {
				return err
			}
			if len(dirs) > 0 {
				return p.judge(cmd, dirs)
			}
			return p.run(cmd)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVar(&p.rules, "rule", nil, "run the proof of this `alert` (repeatable)")
	flags.StringArrayVar(&p.proofs, "proof", nil, "`name` of a proof to run (repeatable)")
	flags.StringVar(&p.out, "out", "", "`directory` for the runs of the proofs (default runs/TIME-alerts)")
	flags.StringVar(&p.controlPlane, "controlplane", "", "controlplane `binary` (default: next to loadgen, then PATH)")
	p.summary.flag(cmd)
	p.output = commandline.AddOutput(cmd)
	return cmd
}

// judge judges the runs in dirs. Without the flag --rule, it fails unless the runs prove every alert.
func (p proveOptions) judge(cmd *cobra.Command, dirs []string) error {
	if len(p.proofs) > 0 || p.out != "" || p.controlPlane != "" {
		return exitcode.Usagef("--proof, --out and --controlplane apply only to new runs (remove these flags, or the directories)")
	}
	if _, err := alertproof.Select(nil, p.rules); err != nil {
		return exitcode.UsageError(err)
	}
	var all []alertproof.Judged
	known := map[string]string{}
	for _, dir := range dirs {
		if twice := known[same(dir)]; twice != "" {
			return exitcode.Usagef("%s and %s are the same run (remove one of them)", twice, dir)
		}
		known[same(dir)] = dir
		judged, err := alertproof.Prove(cmd.Context(), dir)
		if err != nil {
			return err
		}
		for i := range judged {
			judged[i].Dir = short(dir)
		}
		all = append(all, judged...)
	}
	return p.show(cmd, all)
}

// same returns the canonical path of dir, which is the same for all paths that lead to one directory.
func same(dir string) string {
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	if whole, err := filepath.Abs(dir); err == nil {
		dir = whole
	}
	return dir
}

// run runs the proofs one after another. It judges each proof before it starts the next one, and continues if a proof
// cannot run.
func (p proveOptions) run(cmd *cobra.Command) error {
	proofs, err := alertproof.Select(p.proofs, p.rules)
	if err != nil {
		return exitcode.UsageError(err)
	}
	if p.out == "" {
		p.out = filepath.Join("runs", time.Now().UTC().Format("20060102-150405")+"-alerts")
	}
	if err := p.checkOut(proofs); err != nil {
		return err
	}
	say := sayTo(progressTo(cmd))
	var all []alertproof.Judged
	ran := map[string]bool{}
	for i, proof := range proofs {
		name := proof.ScenarioName()
		if ran[name] {
			continue // the run of this scenario has already been judged for all its proofs
		}
		ran[name] = true
		if cmd.Context().Err() != nil {
			all = append(all, alertproof.NotRun(proof, errors.New("this proof did not run, because the command was interrupted")))
			continue
		}
		say("proof %s, %d of %d", proof.Name, i+1, len(proofs))
		dir := filepath.Join(p.out, name)
		if err := p.start(cmd.Context(), cmd.ErrOrStderr(), proof, dir); err != nil {
			say("proof %s did not run: %v", proof.Name, err)
			all = append(all, alertproof.NotRun(proof, err))
			continue
		}
		judged, err := alertproof.Prove(cmd.Context(), dir)
		if err != nil {
			return err
		}
		for _, j := range judged {
			if slices.ContainsFunc(proofs, func(wanted alertproof.Proof) bool { return wanted.Name == j.Proof }) {
				j.Dir = short(dir)
				all = append(all, j)
				say("proof %s: %s", j.Proof, j.Verdict)
			}
		}
	}
	return p.show(cmd, all)
}

// checkOut returns an error if --out is not writable, is a run directory, or already contains a proof's directory.
func (p proveOptions) checkOut(proofs []alertproof.Proof) error {
	if err := commandline.CheckDir(p.out); err != nil {
		err = fmt.Errorf("--out %w", err)
		if commandline.PathAtFault(err) {
			return exitcode.UsageError(err)
		}
		return err
	}
	if _, err := os.Lstat(filepath.Join(p.out, result.RunFile)); err == nil {
		return exitcode.Usagef("--out %s: this is the directory of a run (name a new directory; each proof gets a subdirectory in it)", p.out)
	}
	for _, proof := range proofs {
		dir := filepath.Join(p.out, proof.ScenarioName())
		if _, err := os.Lstat(dir); err == nil {
			return exitcode.Usagef("--out %s: %s already exists (name another directory, or judge the existing run with `loadgen alerts prove %s`)", p.out, dir, shell.Quote(dir))
		}
	}
	return nil
}

// show prints the table of alerts and proofs. The exit code depends on all proofs. If the user specified proofs but no
// rules, the table lists only the alerts that these proofs expect.
func (p proveOptions) show(cmd *cobra.Command, all []alertproof.Judged) error {
	wanted := p.rules
	for _, a := range alerts.Table() {
		if len(p.rules) > 0 || slices.Contains(wanted, a.Name) {
			continue
		}
		if len(p.proofs) == 0 || slices.Contains(p.proofs, a.Run) {
			wanted = append(wanted, a.Name)
		}
	}
	r, w := alertproof.NewReport(all, wanted), cmd.OutOrStdout()
	shown := showAs(w, p.output, r.ExitCode, r, func() error { return alertproof.Text(w, r) })
	return after(p.summary, shown, r, alertproof.Markdown)
}
