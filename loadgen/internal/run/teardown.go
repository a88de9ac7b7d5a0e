package run

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

const teardownTimeout = 5 * time.Minute

// tearDown performs the scenario's teardown actions, even after an interrupt. An error counts as a failure of the
// environment, unless the run had failed or ended early before. In that case, the error is an additional warning.
func (r *run) tearDown() {
	r.phases.tracer.BeginPhase("", time.Now()) // requests from here on are in no phase
	if len(r.plan.Teardown) == 0 {
		return
	}
	ctx, cancel := r.windUp(teardownTimeout)
	defer cancel()
	err := errors.New("the teardown was skipped, because the control plane or cluster can no longer be reached")
	if !r.target.isLost() {
		r.step("teardown")
		r.display.beginStage(scenario.Teardown)
		err = r.phases.tearDown(ctx)
	}
	r.tornDown(err)
}

// tornDown records the error of a teardown; nil means none. If the cluster reached a limit, the error is only a warning:
// the run is over, and its gates judge it.
func (r *run) tornDown(err error) {
	breach := breachOf(err)
	if err != nil {
		err = errors.New(strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	if breach != "" {
		err = fmt.Errorf("%s: %w", breach, err)
	}
	switch {
	case err == nil:
	case breach != "" || r.info.Failure != "" || r.info.Aborted != "" || r.info.Interrupted:
		r.step("warning: %v", err)
		r.info.Warnings = append(r.info.Warnings, err.Error())
	default:
		r.fail(err)
	}
}

// tearDown performs the actions of the teardown. If an action fails, it continues with the next action.
func (ps *phases) tearDown(ctx context.Context) error {
	var errs []error
	for i := range ps.plan.Teardown {
		path := fmt.Sprintf("%s[%d]", scenario.Teardown, i)
		err := ps.actOnObjects(ctx, scenario.Teardown, path, &ps.plan.Teardown[i])
		if ctx.Err() != nil {
			return errors.Join(append(errs, fmt.Errorf("%s: skipped, because the run was stopped (%w)", path, context.Cause(ctx)))...)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", path, err))
		}
	}
	return errors.Join(errs...)
}
