package run

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/shell"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/judge/gate"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/scrape/promimport"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// unlockTimeout is the time limit to release a lock. A lock that is not released expires.
const unlockTimeout = 10 * time.Second

type userCluster struct {
	console
	cluster *cluster.Target
	cleanup string        // command that removes objects that the run left
	lock    *cluster.Lock // lock on the cluster; nil if the run holds none
}

// askForCluster checks a user's cluster, and asks the user to confirm the run before it creates anything. If metrics
// come from a Prometheus server, askForCluster also checks that server, and uses that server's scrape interval if it is
// longer than the scenario's. Finally it takes the cluster's lock, unless Options.Fuse prohibits that. If p has no
// aborts, the run only simulates nodes and takes no lock.
func askForCluster(ctx context.Context, p compiled, runID string, c console) (*target, *promimport.Source, error) {
	o, ends := p.o, p.aborts
	if err := refuseFaults(p.plan); err != nil {
		return nil, nil, err
	}
	t, err := cluster.FromKubeconfig(ctx, o.Kubeconfig, runID, p.plan, c.Step)
	if err != nil {
		return nil, nil, exitcode.EnvironmentError(err)
	}
	t.Waiting = c.waiting
	t.NodesAlone = ends == nil
	if o.Targets != "" {
		if err := t.AddTargets(o.Targets); err != nil {
			return nil, nil, exitcode.UsageError(err)
		}
	}
	done := c.waiting("the Prometheus server to list its targets")
	source, err := findPrometheus(ctx, o.Prometheus, t, p.plan)
	done()
	if err != nil {
		return nil, nil, err
	}
	t.Notes = append(t.Notes, gateNotes(p.gates, t, source)...)
	asked := t.Plan()
	asked.Workers = o.Workers.Describe(runID)
	if ends != nil {
		if source != nil {
			if err := ends.check(ctx, source, func(line string) { t.Notes = append(t.Notes, line) }); err != nil {
				return nil, nil, err
			}
			asked.Notes = t.Notes
		}
		ends.setInterval(p.plan.Record.Interval.D())
		asked.Stops = ends.texts()
	}
	ok, err := o.Confirm(ctx, asked)
	if err != nil {
		return nil, nil, err
	}
	if !ok {
		return nil, nil, exitcode.Usagef("you did not confirm the run, so loadgen created nothing in the cluster")
	}
	u := &userCluster{console: c, cluster: t, cleanup: cleanupCommand(o, runID)}
	if ends != nil && !o.Fuse.NoLock {
		if u.lock, err = t.Lock(ctx, cluster.LockOptions{Scenario: p.plan.Name, Over: o.Fuse.TakeLock, Tell: c.Step}); err != nil {
			return nil, nil, exitcode.EnvironmentError(err)
		}
	}
	return newTarget(t, u, nil), source, nil
}

func cleanupCommand(o Options, runID string) string {
	return "loadgen cleanup " + o.Kubeconfig.Flags() + " --run " + runID
}

// clockNote is the smallest difference between two clocks for which the run adds a note.
const clockNote = 5 * time.Second

// findPrometheus looks for the cluster's targets in the Prometheus server that config names. It returns nil if config
// is nil.
func findPrometheus(ctx context.Context, config *promimport.Config, t *cluster.Target, s *plan.Plan) (*promimport.Source, error) {
	if config == nil {
		return nil, nil
	}
	source, err := promimport.New(*config)
	if err != nil {
		return nil, exitcode.Usagef("--prometheus: %w", err)
	}
	if err := source.Find(ctx); err != nil {
		return nil, exitcode.Environmentf("--prometheus: %w", err)
	}
	every := source.Interval()
	s.Record.Interval = max(s.Record.Interval, scenario.Duration(every))
	var instances []string
	for _, found := range source.Targets() {
		instances = append(instances, found.Instance)
	}
	t.ScrapedElsewhere(source.URL(), instances)
	t.Notes = append(t.Notes, fmt.Sprintf(
		"this run reads the metrics of %s from %s, which scrapes them every %s; before and after each phase, the run waits for one of these scrapes",
		strings.Join(source.Jobs(), ", "), source.URL(), every))
	if ahead := source.Ahead(); ahead.Abs() > clockNote {
		t.Notes = append(t.Notes, fmt.Sprintf("the clock of the Prometheus server is %s ahead of this machine's clock; the run corrects for this difference", ahead.Round(time.Second)))
	}
	return source, nil
}

func gateNotes(gates []gate.Compiled, t *cluster.Target, source *promimport.Source) (notes []string) {
	jobs, offer := t.Jobs(), "to scrape them, add --targets FILE"
	if source != nil {
		jobs, offer = source.Jobs(), "--prometheus-job COMPONENT=JOB names its job in your Prometheus"
	}
	for _, g := range gates {
		if lacks := g.Lacks(jobs); len(lacks) > 0 {
			notes = append(notes, fmt.Sprintf(
				"gate %s will have no data (exit 3), because the metrics of %s are not available (%s; to leave out the gate, add --without-gate %s)",
				g.Name, strings.Join(lacks, ", "), offer, g.Name))
		}
	}
	return notes
}

// awaitLoss waits until the cluster is lost. A run that only simulates nodes does not end then: like kubelets, the
// nodes wait until the cluster is back.
func (u *userCluster) awaitLoss(ctx context.Context) error {
	if u.cluster.NodesAlone {
		return u.cluster.WaitOutLosses(ctx, u.Step)
	}
	return u.cluster.AwaitLoss(ctx)
}

// unlock releases the cluster's lock. It may be called more than once.
func (u *userCluster) unlock() error {
	ctx, cancel := u.windUp(unlockTimeout)
	defer cancel()
	return exitcode.EnvironmentError(u.lock.Release(ctx))
}

func (u *userCluster) lockTaken() string { return u.lock.Taken() }

func (u *userCluster) close(lost bool, _ []result.Phase) error { return u.discard(lost) }

// discard removes the run's objects from the cluster and releases the lock. The error names the objects that are left
// and the command that removes them.
func (u *userCluster) discard(lost bool) error {
	u.step("removing the objects of the run from the cluster")
	ctx, cancel := u.windUp(windUpLimit(lost, lostCleanupTimeout))
	defer cancel()
	err := u.cluster.Cleanup(ctx, u.Step)
	switch {
	case err == nil:
		return u.unlock()
	case lost:
		_ = u.lock.Release(ctx) // if this fails, the lock expires
	default:
		_ = u.unlock()
	}
	if u.hurried() {
		err = fmt.Errorf("a second signal ended the clean-up: %w", err)
	}
	command := u.cleanup
	if dir := u.cluster.RecordedIn(); dir != "" {
		command += " " + shell.Quote(dir)
	}
	return exitcode.EnvironmentError(leftError(fmt.Sprintf("some objects of run %s in cluster %s were not removed: %s (remove them with `%s`)",
		u.cluster.Labels[cluster.RunLabel], u.cluster.Cluster.Name, strings.ReplaceAll(err.Error(), "\n", "; "), command)))
}
