package run

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/result"
)

// sharedPlane is a Stormglass control plane that was started before the run and outlives it.
type sharedPlane struct {
	userCluster
	client *control.Client
}

// checkTarget returns an error if the options name both a control plane and a user's cluster.
func (o Options) checkTarget() error {
	if o.Plane != "" && o.Kubeconfig.Files != "" {
		return exitcode.Usagef("Options.Plane and Options.Kubeconfig cannot be used together: a run has one target")
	}
	return nil
}

// startsPlane reports whether the run starts a control plane.
func (o Options) startsPlane() bool { return o.Plane == "" && o.Kubeconfig.Files == "" }

// sharedTarget connects to the control plane in o.Plane and changes nothing there.
func sharedTarget(ctx context.Context, o Options, s *plan.Plan, runID string, c console) (*target, error) {
	found, err := control.Load(o.Plane)
	if err != nil {
		return nil, exitcode.EnvironmentError(err)
	}
	client, err := control.Dial(o.Plane)
	if err != nil {
		return nil, exitcode.Environmentf("the control plane in %s: %w", o.Plane, err)
	}
	if err := checkSettings(s, found); err != nil {
		return nil, err
	}
	if err := checkFaults(ctx, client, s); err != nil {
		return nil, err
	}
	if err := currentProcesses(ctx, client, &found); err != nil {
		return nil, exitcode.EnvironmentError(err)
	}
	made, err := cluster.FromPlane(found, runID, s)
	if err != nil {
		return nil, exitcode.EnvironmentError(err)
	}
	made.Cluster.Name, made.Cluster.ReadySeconds = result.SharedCluster, 0
	made.Waiting = c.waiting
	cleanup := cleanupCommand(Options{Kubeconfig: cluster.Kubeconfig{Files: found.Kubeconfigs["admin"]}}, runID)
	t := newTarget(made, &sharedPlane{userCluster{console: c, cluster: made, cleanup: cleanup}, client}, client)
	if s.ControlPlane.Count(control.KindCloudAPI) > 0 {
		t.cloud = client
	}
	return t, exitcode.EnvironmentError(t.skipPast(ctx, client))
}

// skipPast records which events and faults are older than the run, so that they do not appear in the run's timeline. It
// does not skip elections, because they show the current leaders.
func (t *target) skipPast(ctx context.Context, s supervisor) error {
	events, err := s.Events(ctx, 0)
	if err != nil {
		return err
	}
	for _, e := range events {
		t.eventsBefore = e.Seq
		if kind := result.EventKind(e.Kind); kind == result.EventLease || kind == result.EventEtcdLeader {
			t.leadersBefore = append(t.leadersBefore, e)
		}
	}
	faults, err := s.Faults(ctx)
	if err != nil {
		return err
	}
	for _, f := range faults {
		for _, kind := range []result.EventKind{result.EventFaultBegin, result.EventFaultEnd, "lost"} {
			t.faultsBefore[f.ID+" "+string(kind)] = true
		}
	}
	return nil
}

// currentProcesses updates the PIDs of the components in c, because earlier runs may have restarted components.
func currentProcesses(ctx context.Context, client *control.Client, c *control.Cluster) error {
	status, err := client.Status(ctx)
	if err != nil {
		return err
	}
	for i := range c.Components {
		for _, now := range status.Components {
			if now.Name == c.Components[i].Name {
				c.Components[i].PID = now.PID
			}
		}
	}
	return nil
}

// checkSettings returns an error for each control plane setting of the scenario that differs from the setting with which
// the control plane c was started.
func checkSettings(s *plan.Plan, c control.Cluster) error {
	var errs []error
	for _, path := range unmet("", reflect.ValueOf(s.ControlPlane), reflect.ValueOf(c.Config)) {
		errs = append(errs, exitcode.UsageError(s.Errorf("controlPlane."+path, "start the control plane with this setting, or leave the setting out",
			"the control plane in %s, which was started before the run, does not have this setting", c.Dir)))
	}
	return errors.Join(errs...)
}

// unmet returns the paths of the fields that are set in `want` and have a different value in `have`.
func unmet(path string, want, have reflect.Value) []string {
	switch {
	case want.IsZero() || want.Kind() == reflect.Map && want.Len() == 0:
		return nil
	case want.Kind() != reflect.Struct:
		if reflect.DeepEqual(want.Interface(), have.Interface()) {
			return nil
		}
		return []string{path}
	}
	var all []string
	for i := range want.NumField() {
		name, _, _ := strings.Cut(want.Type().Field(i).Tag.Get("yaml"), ",")
		all = append(all, unmet(strings.Trim(path+"."+name, "."), want.Field(i), have.Field(i))...)
	}
	return all
}

func (p *sharedPlane) awaitLoss(ctx context.Context) error {
	why := awaitStopping(ctx, p.client)
	if why == nil && ctx.Err() == nil {
		why = errors.New("its supervisor ended")
	}
	return why
}

func (p *sharedPlane) close(lost bool, _ []result.Phase) error { return p.discard(lost) }

// discard removes the run's objects from the control plane. If the control plane has ended, nothing is left to
// remove.
func (p *sharedPlane) discard(lost bool) error {
	if lost {
		return nil
	}
	if err := p.userCluster.discard(false); err != nil {
		return fmt.Errorf("shared control plane: %w", err)
	}
	return nil
}
