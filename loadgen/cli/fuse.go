package cli

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/run"
)

// fuseFlags are the safety flags: they end a run early, limit what a run sends, and protect the cluster under test.
type fuseFlags struct {
	abortOn, maps              []string
	rules, maxRate, takeLock   string
	noLock, cleanupJob, dryRun bool
}

// addOnClusters adds the flags that protect a user's cluster. The caller must call addOnPlanes first.
func (f *fuseFlags) addOnClusters(flags *pflag.FlagSet) {
	flags.Lookup("abort-on").Usage += "; the value \"none\" removes the default conditions for your own cluster"
	flags.BoolVar(&f.noLock, "no-lock", false, "do not take the lock that prevents a second run on the cluster")
	flags.StringVar(&f.takeLock, "take-lock", "", "take the cluster's lock from the run with this `ID` (the error message shows it); if that run is active, it continues, which distorts both results")
	flags.BoolVar(&f.cleanupJob, "cleanup-job", false, "create a Job in your cluster that removes the run's objects if this machine fails; needs --image")
}

// addOnPlanes adds the flags that are also valid for runs on bundled control planes.
func (f *fuseFlags) addOnPlanes(flags *pflag.FlagSet) {
	flags.StringArrayVar(&f.abortOn, "abort-on", nil, "end a run early if this `condition` holds, for example throttled=20%,for=5s (over 20% of requests get 429 for 5 s) or alert=NAME (repeatable; docs/reference/fuse.md lists conditions)")
	flags.StringVar(&f.rules, "abort-rules", "", "`file` or directory of Prometheus rules with alerts for --abort-on alert=NAME; the run also records the metrics that these rules read")
	flags.StringArrayVar(&f.maps, "map", nil, "replace the value of a label in the rules of --abort-rules: `label=from:to` (repeatable)")
	flags.StringVar(&f.maxRate, "max-rate", "", "refuse a scenario whose loads together send more than this `rate`, for example 500/s")
	flags.BoolVar(&f.dryRun, "dry-run", false, "show what would be created and sent, without creating anything")
}

// into copies the flags to fuse. image is the image of the Job that cleans up in the cluster. `others` says whether
// other flags use image, too.
func (f *fuseFlags) into(fuse *run.Fuse, image string, others bool) error {
	*fuse = run.Fuse{AbortOn: f.abortOn, Rules: f.rules, Map: f.maps, NoLock: f.noLock, TakeLock: f.takeLock}
	var errs []error
	if f.maxRate != "" {
		if err := fuse.MaxRate.UnmarshalText([]byte(f.maxRate)); err != nil {
			errs = append(errs, exitcode.Usagef("--max-rate: %w", err))
		} else if fuse.MaxRate <= 0 {
			errs = append(errs, exitcode.Usagef("--max-rate %s: must be greater than 0", f.maxRate))
		}
	}
	switch {
	case f.cleanupJob && image == "":
		errs = append(errs, exitcode.Usagef("--cleanup-job: --image is missing (name an image that has loadgen as its entry point)"))
	case image != "" && !f.cleanupJob && !others:
		errs = append(errs, exitcode.Usagef("--image requires --workers N or --cleanup-job (add one of them, or leave out --image)"))
	case f.cleanupJob:
		if err := (cluster.CleanupOptions{Image: image, Namespace: "any"}).Check(); err != nil {
			errs = append(errs, exitcode.UsageError(err))
		}
		fuse.CleanupImage = image
	}
	return errors.Join(errs...)
}
