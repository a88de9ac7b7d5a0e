package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// `make test-images` sets these.
var (
	archives = flag.String("archives", "", "directory of the images to run; without one no container runs")
	plane    = flag.String("plane", "", "kubeconfig of a control plane for the image loadgen")
)

// TestContainers runs the images as users do: without root, privileges or a writable root file system.
func TestContainers(t *testing.T) {
	if *archives == "" {
		return // without images, only the command is tested
	}
	for _, image := range imageNames() {
		file := filepath.Join(*archives, image+".tar")
		if _, err := os.Stat(file); err != nil && image == "controlplane" {
			continue // `make test-images IMAGES=loadgen`
		}
		tag := load(t, file)
		t.Run(image, func(t *testing.T) { container{tag, image}.test(t) })
	}
}

// load loads an archive into podman's storage, and returns the image's name.
func load(t *testing.T, file string) string {
	t.Helper()
	out, err := exec.Command("podman", "load", "--quiet", "--input", file).Output()
	if err != nil {
		t.Fatalf("podman load: %v\n%s", err, stderrOf(err))
	}
	tag := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(string(out)), "Loaded image:"))
	t.Cleanup(func() {
		if out, err := exec.Command("podman", "rmi", "--force", tag).CombinedOutput(); err != nil {
			t.Errorf("podman rmi %s: %v\n%s", tag, err, out)
		}
	})
	return tag
}

func stderrOf(err error) string {
	if exit, ok := err.(*exec.ExitError); ok {
		return string(exit.Stderr)
	}
	return ""
}

// container runs an image under the rules of the Pod Security profile "restricted". It uses runc, because crun does not
// support hybrid cgroups.
type container struct{ tag, program string }

func (c container) run(options []string, args ...string) (string, error) {
	all := []string{
		"run", "--rm", "--runtime", "runc", "--network", "host", "--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024",
		"--read-only", "--read-only-tmpfs=false", "--cap-drop", "all", "--security-opt", "no-new-privileges",
	}
	cmd := exec.Command("podman", append(append(append(all, options...), c.tag), args...)...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if err != nil {
		return stdout.String() + stderr.String(), err
	}
	return stdout.String(), nil
}

func (c container) test(t *testing.T) {
	out, err := c.run(nil, "version", "-o", "json")
	var version struct{ Version, Platform, Kubernetes string }
	if err != nil || json.Unmarshal([]byte(out), &version) != nil || !strings.HasPrefix(version.Platform, "linux/") || version.Kubernetes == "" {
		t.Fatalf("version: %v\n%s", err, out)
	}
	t.Logf("%s %s on %s", c.program, version.Version, version.Platform)
	if c.program != "loadgen" {
		return
	}
	if out, err := c.run(nil, "validate", "rollout-demo"); err != nil {
		t.Errorf("validate: %v\n%s", err, out)
	}
	if *plane == "" {
		return
	}
	// An unprivileged user writes the run directory to the mounted volume.
	runs := t.TempDir()
	if err := os.Chmod(runs, 0o777); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(runs, "kubeconfig")
	data, err := os.ReadFile(*plane)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, data, 0o644); err != nil {
		t.Fatal(err)
	}
	out, err = c.run([]string{"--volume", runs + ":/runs", "--tmpfs", "/tmp"},
		"run", "rollout-demo", "--set", "nodes.count=10", "--kubeconfig", "/runs/kubeconfig", "--yes", "--without-gate", "leader-changes", "--out", "/runs/one", "-o", "json")
	t.Logf("the run ended with %v", err)
	var result struct {
		ExitCode int
		Gates    []struct{ Name, Verdict string }
	}
	if jsonErr := json.Unmarshal([]byte(out), &result); jsonErr != nil || len(result.Gates) == 0 {
		t.Fatalf("run: %v %v\n%s", err, jsonErr, out)
	}
	// Whether a gate passes depends on the machine. A judged gate shows that loadgen sent the load and read the
	// metrics.
	for _, g := range result.Gates {
		t.Logf("gate %s: %s", g.Name, g.Verdict)
	}
	if result.ExitCode != 0 && result.ExitCode != 1 {
		t.Errorf("exit %d\n%s", result.ExitCode, out)
	}
	if _, err := os.Stat(filepath.Join(runs, "one", "report.html")); err != nil {
		t.Error(err)
	}
}
