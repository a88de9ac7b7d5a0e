package cli

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
)

// maxCompared is the maximum value of --copies. It prevents overflows of the numbers of requests.
const maxCompared = 1_000_000

// Default limits for the differences between a recording and a faithful replay.
const (
	maxRateError       = 0.01
	maxDispersionError = 0.10
)

func newRecordCompare() *cobra.Command {
	var o recording.CompareOptions
	rate, dispersion := maxRateError, maxDispersionError
	var output *commandline.Output
	cmd := &cobra.Command{
		Use:   "compare RECORDING REPLAY",
		Short: "Compare a recording with a recording of its replay",
		Long: `Compare RECORDING with REPLAY. Make REPLAY with 'loadgen record audit --keep-names' from
the audit log that was written while RECORDING was replayed. The command compares the
number of requests by verb, resource and user, and their dispersion: the variance of the
requests per second divided by their mean.

A replay impersonates users whose names contain the user names (or hashes) in RECORDING.
If REPLAY contains such users, the requests of all other users do not count.

Exit codes:
  0  the differences are within --rate and --dispersion
  1  a difference is larger`,
		Example: `  loadgen record audit again.log --keep-names --out again.recording.gz
  loadgen record compare tuesday.recording.gz again.recording.gz`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if o.Speed <= 0 {
				err = errors.Join(err, exitcode.Usagef("--speed %g: must be greater than 0", o.Speed))
			}
			if o.Copies < 1 || o.Copies > maxCompared {
				err = errors.Join(err, exitcode.Usagef("--copies %d is out of bounds (1 to %d)", o.Copies, maxCompared))
			}
			if err != nil {
				return err
			}
			c, err := recording.Compare(args[0], args[1], o)
			if err != nil {
				return err
			}
			exit := exitcode.Pass
			if c.RateError > rate || c.DispersionError > dispersion {
				exit = exitcode.Fail
			}
			w := cmd.OutOrStdout()
			return showAs(w, output, exit, c, func() error { return c.WriteText(w) })
		},
	}
	cmd.Flags().Float64Var(&o.Speed, "speed", 1, "`factor` by which the replay was faster than the recording")
	cmd.Flags().IntVar(&o.Copies, "copies", 1, "`number` of copies that the replay sent")
	percentVar(cmd.Flags(), &rate, "rate", "maximum difference in the number of requests of each verb, resource and user")
	percentVar(cmd.Flags(), &dispersion, "dispersion", "maximum difference in the dispersion")
	output = commandline.AddOutput(cmd)
	return cmd
}
