// Package deploytest supports tests of the files in deploy/. It builds the programs of the modules below tools/, reads
// the compose file with Compose's loader, and arranges the files of a service as in the service's container.
package deploytest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// ToolsEnv is the environment variable that holds the path of a directory with the built programs. "make tools" creates
// the directory. If the variable is not set, Tool builds the programs.
const ToolsEnv = "STORMGLASS_TOOLS"

// The programs that Tool can build.
const (
	Prometheus   = "prometheus"
	Promtool     = "promtool"
	Pint         = "pint"
	Amtool       = "amtool"
	ComposeCheck = "compose-check"
	Actionlint   = "actionlint"
	Helm         = "helm"
	Jsonnet      = "jsonnet"
	Chart        = "chart"
)

// packages maps each program to its package path and to the module that determines the program's version.
var packages = map[string]struct{ module, path string }{
	Prometheus:   {"tools", "github.com/prometheus/prometheus/cmd/prometheus"},
	Promtool:     {"tools", "github.com/prometheus/prometheus/cmd/promtool"},
	Pint:         {"tools", "github.com/cloudflare/pint/cmd/pint"},
	Amtool:       {"tools", "github.com/prometheus/alertmanager/cmd/amtool"},
	ComposeCheck: {"tools", "github.com/stormglass/stormglass/tools/compose-check"},
	Actionlint:   {"tools/release", "github.com/rhysd/actionlint/cmd/actionlint"},
	Helm:         {"tools/charts", "helm.sh/helm/v4/cmd/helm"},
	Jsonnet:      {"tools/charts", "github.com/google/go-jsonnet/cmd/jsonnet"},
	Chart:        {"tools/charts", "github.com/stormglass/stormglass/tools/charts/chart"},
}

// Root returns the root of the repository.
func Root(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("go", "env", "GOMOD").Output()
	if err != nil {
		t.Fatalf("find the module: %v", err)
	}
	return filepath.Dir(strings.TrimSpace(string(out)))
}

// Tool returns the path of a program, and builds the program if ToolsEnv is not set. The first build of Prometheus
// takes minutes; later builds use Go's build cache.
func Tool(t testing.TB, name string) string {
	t.Helper()
	if dir := os.Getenv(ToolsEnv); dir != "" {
		path, err := filepath.Abs(filepath.Join(dir, name))
		if err == nil {
			_, err = os.Stat(path)
		}
		if err != nil {
			t.Fatalf("%s: %v (build the programs with: make tools)", ToolsEnv, err)
		}
		return path
	}
	// With -n, the go command builds the program and prints its path.
	from := packages[name]
	cmd := exec.Command("go", "-C", filepath.Join(Root(t), from.module), "tool", "-n", from.path)
	cmd.Env = append(os.Environ(), "GOFLAGS="+strings.TrimSpace(os.Getenv("GOFLAGS")+" -tags=remove_all_sd"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("build %s: %v\n%s", name, err, stderr.String())
	}
	return strings.TrimSpace(string(out))
}

// Run runs a program and returns what it has written to stdout and stderr. The error is the program's exit error.
func Run(t testing.TB, dir, program string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Documented returns the arguments of each command on the pages of docs/how-to that runs a program. It finds commands
// of the form "bin/PROGRAM ARGUMENTS" in code blocks and between backticks.
func Documented(t testing.TB, program string) [][]string {
	t.Helper()
	pages, err := filepath.Glob(filepath.Join(Root(t), "docs", "how-to", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	var all [][]string
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.FieldsFuncSeq(string(text), func(r rune) bool { return r == '\n' || r == '`' }) {
			if _, args, ok := strings.Cut(line, "bin/"+program+" "); ok {
				args, _, _ = strings.Cut(args, " > ")
				all = append(all, strings.Fields(args))
			}
		}
	}
	if len(all) == 0 {
		t.Fatalf("docs/how-to has no command of %s", program)
	}
	return all
}

// Project is the compose file with resolved variables and absolute paths. It has every field that the compose file
// uses. The function Compose refuses other fields, because the tests would ignore them.
type Project struct {
	Name     string             `json:"name"`
	Services map[string]Service `json:"services"`
}

// Service is one service of a compose file.
type Service struct {
	Image       string            `json:"image"`
	NetworkMode string            `json:"network_mode"`
	User        string            `json:"user"`
	Entrypoint  []string          `json:"entrypoint"` // the entrypoint; null means the entrypoint of the image
	Command     []string          `json:"command"`
	Environment map[string]string `json:"environment"`
	Volumes     []Volume          `json:"volumes"`
	Tmpfs       []string          `json:"tmpfs"`
}

// Volume is one mount of a service.
type Volume struct {
	Type     string `json:"type"`
	Source   string `json:"source"`
	Target   string `json:"target"`
	ReadOnly bool   `json:"read_only"`
	// Bind holds the setting create_host_path, which says whether an engine creates a missing source directory.
	Bind struct {
		CreateHostPath *bool `json:"create_host_path"`
	} `json:"bind"`
}

// Compose reads deploy/compose/compose.yaml with the library of docker compose, which validates the file against the
// schema of the Compose Specification. env holds additional environment variables as NAME=VALUE. Compose fails if the
// library does not accept the file.
func Compose(t testing.TB, env ...string) (Project, error) {
	t.Helper()
	cmd := exec.Command(Tool(t, ComposeCheck), filepath.Join(Root(t), "deploy", "compose", "compose.yaml"))
	cmd.Env = append(os.Environ(), env...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	var p Project
	if err := cmd.Run(); err != nil {
		return p, fmt.Errorf("%w: %s", err, strings.TrimSpace(stderr.String()))
	}
	fields := json.NewDecoder(&stdout)
	fields.DisallowUnknownFields()
	if err := fields.Decode(&p); err != nil {
		return p, fmt.Errorf("compose.yaml has a field that no test checks (add it to deploytest.Project): %w", err)
	}
	return p, nil
}

// Container creates a directory with links to the service's mounts, at the paths that they have in the container, and
// returns the directory. Below it, each path in the service's configuration leads to the same file as in the container.
func (s Service) Container(t testing.TB) string {
	t.Helper()
	root := t.TempDir()
	for _, v := range s.Volumes {
		target := filepath.Join(root, filepath.FromSlash(v.Target))
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(v.Source, target); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// listening matches the log line in which Prometheus reports its address.
var listening = regexp.MustCompile(`msg="Listening on".* address=(\S+)`)

// StartPrometheus starts a Prometheus server on a free port of 127.0.0.1, and returns its URL when the server is ready.
// config is the configuration file and data the data directory of the server. StartPrometheus stops the server at the
// end of the test. The test fails if the server does not exit with 0.
func StartPrometheus(t testing.TB, config, data string, args ...string) (url string) {
	t.Helper()
	cmd := exec.Command(Tool(t, Prometheus), append(args, "--config.file="+config, "--storage.tsdb.path="+data, "--web.listen-address=127.0.0.1:0")...)
	logs, stderr := io.Pipe()
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := &strings.Builder{}
	ready := make(chan string, 1)
	var end error
	var threads sync.WaitGroup
	threads.Go(func() {
		end = cmd.Wait()
		stderr.Close() // ends the reader of the logs
	})
	threads.Go(func() {
		defer close(ready)
		address, is, told, blind := "", false, false, false
		for lines := bufio.NewScanner(logs); lines.Scan(); {
			said.WriteString(lines.Text() + "\n")
			if m := listening.FindStringSubmatch(lines.Text()); m != nil {
				address = m[1]
			}
			if !blind && strings.Contains(lines.Text(), "couldn't initialize inotify") {
				blind = true
				t.Error("Prometheus cannot watch files because all inotify instances are in use (run sudo sysctl fs.inotify.max_user_instances=512)")
			}
			is = is || strings.Contains(lines.Text(), "Server is ready to receive web requests")
			if is && address != "" && !told { // the line with the address may come after the line that reports readiness
				ready <- "http://" + address
				told = true
			}
		}
		_, _ = io.Copy(io.Discard, logs) // the scanner stops at a line that is too long
	})
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // an error means that the server has already ended
		threads.Wait()
		if end != nil {
			t.Errorf("Prometheus did not stop cleanly: %v", end)
		}
		if t.Failed() {
			t.Logf("output of Prometheus:\n%s", said)
		}
	})
	url, ok := <-ready
	if !ok {
		t.Fatal("Prometheus ended before it was ready")
	}
	return url
}
