// Package exitcode holds the exit codes of both programs, loadgen and
// controlplane.
package exitcode

const (
	// Pass: every gate passed, or the command succeeded.
	Pass = 0
	// Fail: a gate failed.
	Fail = 1
	// Usage: bad usage, a bad scenario or config file, or a path that was named
	// and cannot be used.
	Usage = 2
	// NoData: a run could not be judged.
	NoData = 3
	// Environment: the machine, the control plane or the cluster failed.
	Environment = 4
)

// Meanings are what the codes mean in loadgen, as its manual, README and docs say.
func Meanings() map[int]string {
	return map[int]string{
		Pass:        "every gate passed",
		Fail:        "a gate failed",
		Usage:       "bad usage or a bad scenario",
		NoData:      "could not judge: no data, generator saturated, interrupted",
		Environment: "the environment failed",
	}
}
