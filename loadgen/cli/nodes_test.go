package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A plain Deployment runs on simulated nodes of a bundled plane, and so do the pods of `kubectl run` and containers of
// `kubectl debug`. On a user's cluster the nodes are tainted, and the printed tolerations put a pod on them.
func TestPodsOnSimulatedNodes(t *testing.T) {
	useSharedPlane(t)
	own := plane.Cluster().Kubeconfigs["admin"]
	data, err := os.ReadFile(own)
	if err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(t.TempDir(), "users.kubeconfig")
	if err := os.WriteFile(foreign, data, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Run("on our own plane", func(t *testing.T) {
		p := startLoadgen(t, "nodes", "--count", "2", "--kubeconfig", own, "--yes")
		p.awaitLine("2 nodes Ready")
		kubectl(t, "create", "deployment", "plain", "--image=none", "--replicas=3")
		kubectl(t, "rollout", "status", "deployment/plain", "--timeout=120s")
		kubectl(t, "delete", "deployment", "plain", "--wait", "--cascade=foreground")
		if out := kubectl(t, "run", "once", "--rm", "-i", "--restart=Never", "--image=none"); !strings.Contains(out, `pod "once" deleted`) {
			t.Errorf("a pod that runs once: %s", out)
		}
		kubectl(t, "run", "debugged", "--image=none")
		kubectl(t, "wait", "pod/debugged", "--for=condition=Ready", "--timeout=120s")
		kubectl(t, "debug", "debugged", "--image=none", "--", "true")
		kubectl(t, "wait", "pod/debugged", "--for=jsonpath={.status.ephemeralContainerStatuses[0].state.running.startedAt}", "--timeout=120s")
		kubectl(t, "delete", "pod", "debugged", "--wait")
		stop(t, p)
	})
	t.Run("on a user's cluster", func(t *testing.T) {
		p := startLoadgen(t, "nodes", "--count", "2", "--kubeconfig", foreign, "--yes")
		p.awaitLine("2 nodes Ready")
		p.awaitLine("tolerations: [{key: stormglass.dev/simulated, ")
		toleration := lastStep(p)
		p.awaitLine("nodeSelector: {stormglass.dev/run: ")
		selector := lastStep(p)
		spec := "\n      " + toleration + "\n      " + selector
		apply(t, deployment("bare", ""))
		apply(t, deployment("pasted", spec))
		kubectl(t, "rollout", "status", "deployment/pasted", "--timeout=120s")
		if ready := kubectl(t, "get", "deployment", "bare", "-o", "jsonpath={.status.readyReplicas}"); ready != "" {
			t.Errorf("%s pods without the toleration are Ready", ready)
		}
		kubectl(t, "delete", "deployment", "bare", "pasted", "--wait", "--cascade=foreground")
		stop(t, p)
	})
	wantNothingLeft(t, own)
}

// Simulated nodes wait for a cluster that cannot be reached, as kubelets do, and continue when it is back.
func TestNodesOutliveALostCluster(t *testing.T) {
	useSharedPlane(t)
	w, kubeconfig := newWire(t)
	p := startLoadgen(t, "nodes", "--count", "2", "--kubeconfig", kubeconfig, "--yes")
	p.awaitLine("2 nodes Ready")
	w.cut()
	p.awaitLine("connection refused")
	w.mend()
	p.awaitLine("answers again, after ")
	apply(t, deployment("later", "\n      tolerations: [{operator: Exists}]"))
	kubectl(t, "rollout", "status", "deployment/later", "--timeout=120s")
	kubectl(t, "delete", "deployment", "later", "--wait", "--cascade=foreground")
	stop(t, p)
	wantNothingLeft(t, plane.Cluster().Kubeconfigs["admin"])
}

// lastStep returns the last printed line, without its time.
func lastStep(p *loadgenProcess) string {
	_, line, _ := strings.Cut(p.said[len(p.said)-1], "  ")
	return strings.TrimSpace(line)
}

func stop(t *testing.T, p *loadgenProcess) {
	t.Helper()
	if err := p.cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	p.wantExit(0)
}

func deployment(name, spec string) string {
	return `apiVersion: apps/v1
kind: Deployment
metadata: {name: ` + name + `}
spec:
  selector: {matchLabels: {app: ` + name + `}}
  template:
    metadata: {labels: {app: ` + name + `}}
    spec:
      containers: [{name: none, image: none}]` + spec + "\n"
}

func apply(t *testing.T, manifest string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifest.yaml")
	if err := os.WriteFile(file, []byte(manifest), 0o600); err != nil {
		t.Fatal(err)
	}
	kubectl(t, "apply", "-f", file)
}

// kubectl runs the stock kubectl against the shared plane.
func kubectl(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, plane.Binary, append([]string{"kubectl", "--dir", plane.Cluster().Dir}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}
