package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// FindControlPlane looks for the binary beside ours, then on PATH.
func FindControlPlane() (string, error) {
	if self, err := os.Executable(); err == nil {
		if real, err := filepath.EvalSymlinks(self); err == nil {
			self = real
		}
		beside := filepath.Join(filepath.Dir(self), "controlplane")
		if info, err := os.Stat(beside); err == nil && info.Mode()&0o111 != 0 {
			return beside, nil
		}
	}
	if path, err := exec.LookPath("controlplane"); err == nil {
		return path, nil
	}
	return "", exitcode.Environmentf("no controlplane binary beside loadgen or on PATH (`make build` makes both in bin/; --controlplane FILE names one; --kubeconfig FILE runs against your own cluster)")
}

// startPlane brings up a plane in dir and waits until it is ready. When ctx
// ends first, the plane is stopped and nothing remains.
func startPlane(ctx context.Context, binary, dir string, s *scenario.Scenario, step func(string)) (*control.Supervisor, error) {
	if binary == "" {
		var err error
		if binary, err = FindControlPlane(); err != nil {
			return nil, err
		}
	} else {
		var err error
		if binary, err = commandline.Program(binary); err != nil {
			return nil, exitcode.Environmentf("--controlplane %w (`make build` makes bin/controlplane)", err)
		}
	}
	plane, err := control.Start(ctx, control.StartOptions{
		Binary: binary, Dir: dir, Config: &s.ControlPlane, Progress: &lineWriter{line: step},
	})
	var exit *control.ExitError
	switch {
	case err == nil:
		return plane, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.As(err, &exit) && exit.Code == control.ExitUsage:
		return nil, exitcode.UsageError(inScenario(s, exit.Msg))
	}
	return nil, exitcode.Environmentf("the control plane did not start: %w", err)
}

// inScenario turns the supervisor's complaints about the config that it read
// from stdin, "stdin:1: etcd.flags.x: etcd has no such flag", into errors at
// the lines of the scenario that the config stands in.
func inScenario(s *scenario.Scenario, complaints string) error {
	var errs []error
	for line := range strings.Lines(complaints) {
		line = strings.TrimSpace(line)
		where, rest, _ := strings.Cut(line, ": ")
		field, msg, ok := strings.Cut(rest, ": ")
		if !ok || !strings.HasPrefix(where, "stdin:") {
			errs = append(errs, fmt.Errorf("the scenario's controlPlane: %s", line))
			continue
		}
		errs = append(errs, s.Errorf("controlPlane."+field, "", "%s", msg))
	}
	return errors.Join(errs...)
}

// tidyPlane removes what is not needed after a run: keys, which should not lie
// about, and etcd's data. Logs and configuration stay.
func (r *run) tidyPlane() error {
	control.RemoveSocketDir(filepath.Join(r.dir, planeDir)) // of a supervisor that was killed
	return removeParts(filepath.Join(r.dir, planeDir), append([]string{"data", "bin"}, keyParts()...))
}

// keyParts are the parts of a plane's directory that hold keys.
func keyParts() []string { return []string{"pki", "kubeconfigs"} }

func removeParts(dir string, parts []string) error {
	var errs []error
	for _, part := range parts {
		if err := os.RemoveAll(filepath.Join(dir, part)); err != nil {
			errs = append(errs, exitcode.Environmentf("tidy %s: %w", dir, err))
		}
	}
	return errors.Join(errs...)
}

// planeLeftLogs reports whether a plane that did not start has kept the logs that say why.
func planeLeftLogs(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, planeDir, "logs"))
	return err == nil
}

// removeButLogs removes what a run wrote, but for the logs of its plane.
func removeButLogs(dir string) error {
	return errors.Join(removeBut(dir, planeDir), removeBut(filepath.Join(dir, planeDir), "logs"))
}

// removeBut removes all that is in a directory but one entry.
func removeBut(dir, keep string) error {
	entries, err := os.ReadDir(dir)
	errs := []error{err}
	for _, e := range entries {
		if e.Name() != keep {
			errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
		}
	}
	return errors.Join(errs...)
}

// repeatedByError reports whether the line is one of the supervisor's last, which come back as an error
// and are printed once, there.
func repeatedByError(line string) bool {
	return strings.HasPrefix(line, "controlplane: ") || strings.HasPrefix(line, "stopping: ")
}

// lineWriter passes on whole lines.
type lineWriter struct {
	line func(string)

	mu      sync.Mutex
	partial []byte
	told    bool // the last line was left out
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
		// What is quoted below a line goes with it.
		if l.told = repeatedByError(string(line)) || l.told && bytes.HasPrefix(line, []byte("  ")); !l.told {
			l.line(string(line))
		}
		l.partial = rest
	}
}
