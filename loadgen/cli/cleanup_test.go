package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// Each command that takes a kubeconfig reports that it waits for the exec plugin, and Ctrl-C ends the command.
func TestHangingPluginIsNamed(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	never, err := os.OpenFile(pipe, os.O_RDWR, 0) // the plugins read it until the test ends
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { never.Close() })
	kubeconfig := filepath.Join(dir, "kubeconfig")
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: x
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: cat, args: [%q]}}}]
contexts: [{name: x, context: {cluster: c, user: u}}]
`, pipe)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(dir, "run")
	for name, c := range map[string]struct {
		args []string
		code int
	}{
		"cleanup": {[]string{"cleanup"}, 3},
		"nodes":   {[]string{"nodes"}, 0}, // Ctrl-C must end it
		"run":     {[]string{"run", "rollout-demo", "--out", out}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startLoadgen(t, append(c.args, "--yes", "--kubeconfig", kubeconfig)...)
			p.awaitLine("waiting for the exec plugin of the kubeconfig (cat " + pipe + ") and the cluster to report the user name, ") // and for how long: 3s, or more on a busy machine
			if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			_ = p.cmd.Wait() // not for the plugin, which has the same standard error
			if code := p.cmd.ProcessState.ExitCode(); code != c.code {
				t.Errorf("exit code %d", code)
			}
		})
	}
	t.Cleanup(func() {
		if _, err := os.Stat(out); !os.IsNotExist(err) {
			t.Errorf("the run's directory is left: %v", err)
		}
	})
}
