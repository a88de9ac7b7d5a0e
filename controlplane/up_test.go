package controlplane_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/planetest"
)

func TestUpRefused(t *testing.T) {
	temp := t.TempDir()
	foreign := filepath.Join(temp, "foreign")
	if err := os.MkdirAll(foreign, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(foreign, "thesis.tex"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	fresh := filepath.Join(temp, "a", "b", "plane")
	for _, c := range []struct {
		name, dir, config string
		code              int
		want              string
	}{
		{"in use", shared.Cluster().Dir, "", 4, "a control plane already runs here with supervisor process " + fmt.Sprint(shared.Cluster().SupervisorPID)},
		{"a foreign directory", foreign, "", 2, "not empty and not a control plane's directory (choose another --dir)"},
		{"unwritable", "/proc/stormglass/plane", "", 2, "/proc/stormglass/plane: no such file or directory (choose another --dir)"},
		{"unknown field", fresh, "scheduler:\n  percentageOfNodesToScor: 5\n", 2, `stdin:2: scheduler.percentageOfNodesToScor: unknown field "percentageOfNodesToScor" (did you mean "percentageOfNodesToScore"?)`},
		{"out of bounds", fresh, "controllerManager: {qps: -3}\n", 2, "stdin:1: controllerManager.qps: -3 is out of bounds"},
		{"our own flag", fresh, "etcd:\n  flags:\n    unsafe-no-fsync: \"true\"\n", 2, "stdin:3: etcd.flags.unsafe-no-fsync: "},
		{"unknown flag", fresh, "apiServer:\n  flags:\n    max-request-inflight: \"5\"\n", 2, `stdin:3: apiServer.flags.max-request-inflight: kube-apiserver has no such flag (did you mean "max-requests-inflight"?)`},
		{"wrong value", fresh, "controllerManager:\n  flags:\n    node-monitor-grace-period: soon\n", 2, "stdin:3: controllerManager.flags.node-monitor-grace-period: "},
		{"bad scheduler profile", fresh, "scheduler:\n  config:\n    profiles: [{schedulerName: x, pluginz: 1}]\n", 2, `stdin:2: scheduler.config: strict decoding error: unknown field "profiles[0].pluginz"`},
		{"bad scheduler value", fresh, "scheduler:\n  config: {parallelism: -1}\n", 2, `stdin:2: scheduler.config: parallelism: Invalid value: -1`},
		{"refused by the component", filepath.Join(temp, "refused"), "apiServer: {flags: {runtime-config: no/such=true}}\n", 4, "kube-apiserver-0 exited with code 1 before it was ready; from its log, " + filepath.Join(temp, "refused", "logs", "kube-apiserver-0.log")},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := []string{"up", "--dir", c.dir}
			if c.config != "" {
				args = append(args, "--config", "-")
			}
			stdout, stderr, code := runEnv(t, nil, c.config, args...)
			if code != c.code || !strings.Contains(stderr, c.want) || stdout != "" {
				t.Errorf("exit %d, want %d and %q:\n%s%s", code, c.code, c.want, stdout, stderr)
			}
		})
	}
	if _, err := os.Stat(filepath.Join(temp, "a")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("failed starts left a directory behind: %v", err)
	}
	if left, _ := os.ReadDir(foreign); len(left) != 1 {
		t.Errorf("entries of the foreign directory = %v, want one file", left)
	}
}

func TestTooFewDescriptors(t *testing.T) {
	dir := filepath.Join(planetest.Dir(t), "plane")
	_, stderr, code := limited(t, "ulimit -n 1024", "up", "--dir", dir)
	if code != 4 || !strings.Contains(stderr, "too few file descriptors: the hard limit of open files is 1024, 3072 less than the 4096") {
		t.Errorf("exit %d, want 4 and the missing descriptors: %s", code, stderr)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the failed start left a directory behind: %v", err)
	}
}

// A plane that resumes prints the warnings for its stored config. In a foreign directory, nothing starts, so only the
// warning is printed.
func TestUpWarnsOfSettingsOfLastStart(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"config.json": `{"etcd": {"members": 4}}`, "thesis.tex": "x"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, stderr, code := run(t, "up", "--dir", dir)
	if code != 2 || !strings.Contains(stderr, "warning: etcd.members: 4 members have a quorum of 3 ") {
		t.Errorf("exit %d, want 2 and a warning: %s", code, stderr)
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"etcd": {"members": 9}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := run(t, "up", "--dir", dir); code != 4 || !strings.Contains(stderr, "controlplane: etcd.members: 9 is out of bounds (use 1, 3, 5 or 7; ") {
		t.Errorf("exit %d, want 4 and the invalid field: %s", code, stderr)
	}
}

// A command does not block on a FIFO in the plane's directory.
func TestPipesInThePlanesDirectory(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"config.json", "stopped.json"} {
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if _, stderr, code := run(t, "up", "--dir", dir); code != 4 || !strings.Contains(stderr, "config.json: it is a pipe, not a regular file") {
		t.Errorf("up with a FIFO: exit %d, want 4: %s", code, stderr)
	}
	if _, stderr, code := run(t, "status", "--dir", dir); code != 4 {
		t.Errorf("status with a FIFO: exit %d, want 4: %s", code, stderr)
	}
}

// An interrupt while components check their settings is reported. `up --detach` reports it too, and its supervisor
// ends.
func TestInterruptDuringSettingsCheck(t *testing.T) {
	config := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(config, []byte("apiServer: {flags: {max-requests-inflight: \"800\"}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []string{"--detach", "--output=text"} {
		t.Run(mode, func(t *testing.T) {
			dir := filepath.Join(planetest.Dir(t), "plane")
			cmd := exec.Command(shared.Binary, "up", mode, "--dir", dir, "--config", config)
			var said bytes.Buffer
			cmd.Stderr = &said
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, 20*time.Second, "it has a child", func() bool { return hasChild(t, cmd.Process.Pid) })
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait() // the exit code shows the error
			told := strings.Contains(said.String(), "interrupted while starting: signal ") ||
				strings.Contains(said.String(), "was killed by SIG") // it had not yet read its config
			if code := cmd.ProcessState.ExitCode(); code != 4 || !told {
				t.Errorf("exit %d, want 4 and a message about the interrupt: %s", code, &said)
			}
			if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the interrupted start left a directory behind: %v", err)
			}
		})
	}
}

// hasChild reports whether a process has a child process.
func hasChild(t *testing.T, pid int) bool {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(all, func(file string) bool {
		stat, _ := os.ReadFile(file)                  // the process may have ended
		_, rest, _ := strings.Cut(string(stat), ") ") // the process name
		fields := strings.Fields(rest)                // state, parent, ...
		return len(fields) > 1 && fields[1] == strconv.Itoa(pid)
	})
}
