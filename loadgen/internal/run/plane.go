package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/auditsummary"
	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

// FindControlPlane looks for the controlplane binary next to this program, then on PATH.
func FindControlPlane() (string, error) {
	path, err := os.Executable()
	if err == nil {
		path, err = commandline.Find(path, "controlplane")
	}
	if err == nil {
		return path, nil
	}
	return "", exitcode.Environmentf("no controlplane binary next to loadgen or on PATH (build both with `make build`, or name one with --controlplane FILE; to use your own cluster, add --kubeconfig FILE)")
}

const planeDir = "controlplane"

// ErrPlaneEnded means that the control plane ended during the run. The error of the run wraps it.
var ErrPlaneEnded = errors.New("the control plane ended during the run")

type bundledPlane struct {
	console
	dir     string
	audited bool
	// loadUser is the user name with which loads send their requests.
	loadUser string
	*control.Supervisor
	client *control.Client
}

// startPlane starts a control plane in dir and waits until it is ready. If ctx ends first, it stops the control plane
// and removes what it created.
func startPlane(ctx context.Context, binary, dir string, s *plan.Plan, t *tracing, c console) (*bundledPlane, error) {
	defer c.waiting("the control plane to be ready")()
	binary, err := controlPlaneProgram(binary)
	if err != nil {
		return nil, err
	}
	config := s.ControlPlane
	if t != nil {
		config.Tracing = t.config
	}
	plane, err := control.Start(ctx, control.StartOptions{
		Binary: binary, Dir: dir, Config: &config, Progress: &lineWriter{line: c.Step},
	})
	var exit *control.ExitError
	switch {
	case err == nil:
		return &bundledPlane{console: c, dir: dir, audited: s.ControlPlane.Audited(), loadUser: s.ControlPlane.LoadUserName(), Supervisor: plane}, nil
	case ctx.Err() != nil:
		control.RemoveSocketDir(dir) // a supervisor that was killed leaves this and dir behind
		return nil, errors.Join(context.Cause(ctx), os.RemoveAll(dir))
	case errors.As(err, &exit) && exit.Code == control.ExitUsage:
		return nil, exitcode.UsageError(inScenario(s, exit.Msg))
	}
	return nil, exitcode.Environmentf("the control plane did not start: %w", err)
}

func bundledTarget(ctx context.Context, o Options, s *plan.Plan, dir, runID string, tracing *tracing, c console, started *undo) (t *target, p *bundledPlane, err error) {
	if p, err = startPlane(ctx, o.ControlPlane, dir, s, tracing, c); err != nil {
		return nil, nil, err
	}
	started.add(func() error { return p.discard(t != nil && t.isLost()) })
	t, err = p.target(ctx, runID, s)
	return t, p, err
}

// target connects to the control plane and checks that it supports every fault of the scenario.
func (p *bundledPlane) target(ctx context.Context, runID string, s *plan.Plan) (*target, error) {
	var err error
	if p.client, err = control.Dial(p.Cluster().Dir); err != nil {
		return nil, exitcode.Environmentf("the control plane's supervisor: %w", err)
	}
	if err := checkFaults(ctx, p.client, s); err != nil {
		return nil, err
	}
	t, err := cluster.FromPlane(p.Cluster(), runID, s)
	if err != nil {
		return nil, err
	}
	t.Waiting = p.waiting
	made := newTarget(t, p, p.client)
	if s.ControlPlane.Count(control.KindCloudAPI) > 0 {
		made.cloud = p.client
	}
	return made, nil
}

// inScenario converts the supervisor's errors about its configuration into errors that name the line of the scenario.
// The supervisor reads the configuration from stdin, so its errors look like "stdin:1: etcd.flags.x: etcd has no such
// flag".
func inScenario(s *plan.Plan, complaints string) error {
	var errs []error
	for line := range strings.Lines(complaints) {
		line = strings.TrimSpace(line)
		where, rest, _ := strings.Cut(line, ": ")
		field, msg, ok := strings.Cut(rest, ": ")
		if !ok || !strings.HasPrefix(where, "stdin:") {
			errs = append(errs, fmt.Errorf("the scenario's section controlPlane: %s", line))
			continue
		}
		errs = append(errs, s.Errorf("controlPlane."+field, "", "%s", msg))
	}
	return errors.Join(errs...)
}

// awaitLoss waits until the control plane has ended or begun to stop, and returns the reason. It returns nil when ctx
// ends. A fault of the scenario is not a loss, because the supervisor keeps running.
func (p *bundledPlane) awaitLoss(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stopping := make(chan error, 1)
	go func() { stopping <- awaitStopping(ctx, p.client) }()
	for {
		select {
		case <-p.Done():
			return planeEnded(p.Supervisor)
		case why := <-stopping:
			if why != nil {
				return why
			}
			stopping = nil // no more events: the supervisor will end too
		case <-ctx.Done():
			return nil
		}
	}
}

func planeEnded(p *control.Supervisor) error {
	if err := p.Err(); err != nil {
		return err
	}
	return errors.New("another process stopped it")
}

// stop stops the control plane. It returns nil without waiting if the user no longer waits, or if the control plane is
// lost, because the run has already reported the loss.
func (p *bundledPlane) stop(lost bool) error {
	ctx, cancel := p.windUp(windUpTimeout)
	defer cancel()
	select {
	case <-p.Done(): // the loss is already reported
		return nil
	default:
	}
	if lost {
		cancel()
	}
	if err := p.end(ctx); !lost && !p.hurried() {
		return err
	}
	return nil
}

// clearAllWithin is the time limit to undo the remaining faults at the end. A supervisor that hangs does not respond.
const clearAllWithin = 15 * time.Second

// end stops the control plane. If nothing needs its audit log, `end` kills the processes. Before that, it undoes the
// remaining faults, because they may have changed this machine outside the control plane's directory.
func (p *bundledPlane) end(ctx context.Context) error {
	if p.audited || p.client == nil {
		return p.Stop(ctx) // Stop undoes faults too
	}
	within, cancel := context.WithTimeout(ctx, clearAllWithin)
	defer cancel()
	_, _ = p.client.ClearAll(within) // the phase has already reported an error of its faults
	return p.StopNow(ctx)
}

func (p *bundledPlane) discard(lost bool) error {
	return errors.Join(p.stop(lost), os.RemoveAll(p.dir))
}

// close stops the control plane, summarizes its audit log, and removes its credentials and etcd's data. It keeps logs
// and configuration.
func (p *bundledPlane) close(lost bool, phases []result.Phase) error {
	if p.audited {
		p.step("stopping the control plane")
	} else {
		p.step("stopping the control plane by killing its processes, because its data is not kept")
	}
	err := errors.Join(p.stop(lost), p.summariseAudit(phases))
	control.RemoveSocketDir(p.dir) // a supervisor that was killed leaves it behind
	return errors.Join(err, removeParts(p.dir, append(keyParts(), "data", "bin")...))
}

// summariseAudit writes a summary of the load's requests in the audit log, and removes the log. Without an audit log it
// does nothing.
func (p *bundledPlane) summariseAudit(phases []result.Phase) error {
	if !p.audited {
		return nil
	}
	ctx, cancel := p.windUp(windUpTimeout)
	defer cancel()
	logs := filepath.Join(p.dir, control.AuditLogs)
	summary, err := auditsummary.ReadLog(ctx, logs, p.loadUser, phases)
	if err == nil {
		err = rundir.WriteJSON(filepath.Dir(p.dir), result.AuditFile, summary)
	}
	if err != nil {
		return exitcode.EnvironmentError(err)
	}
	return os.RemoveAll(logs) // up to 4 GB, no longer needed
}

func keyParts() []string { return []string{"pki", "kubeconfigs"} }

func removeParts(dir string, parts ...string) error {
	var errs []error
	for _, part := range parts {
		if err := os.RemoveAll(filepath.Join(dir, part)); err != nil {
			errs = append(errs, exitcode.Environmentf("clean up %s: %w", dir, err))
		}
	}
	return errors.Join(errs...)
}

// repeatedByError reports whether `line` is one of the supervisor's final lines. lineWriter omits these lines, because
// the error of control.Start contains them.
func repeatedByError(line string) bool {
	return strings.HasPrefix(line, "controlplane: ") || strings.HasPrefix(line, "stopping: ")
}

type lineWriter struct {
	line func(string)

	mu      sync.Mutex
	partial []byte
	omitted bool // the last line was omitted
}

func (l *lineWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, b...)
	for {
		line, rest, found := bytes.Cut(l.partial, []byte("\n"))
		if !found {
			return len(b), nil
		}
		// Omit the indented lines below an omitted line too.
		if l.omitted = repeatedByError(string(line)) || l.omitted && bytes.HasPrefix(line, []byte("  ")); !l.omitted {
			l.line(string(line))
		}
		l.partial = rest
	}
}

// unlock does nothing, because no other run uses the control plane.
func (p *bundledPlane) unlock() error { return nil }

func (p *bundledPlane) lockTaken() string { return "" }
