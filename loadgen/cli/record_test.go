package cli

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/recording/capture"
)

// TestRecordClusterSeesWrites: writes during the recording of a cluster are in the recording,
// with the program that wrote, and the cluster's objects are counted.
func TestRecordClusterSeesWrites(t *testing.T) {
	useSharedPlane(t)
	kubeconfig := plane.Cluster().Kubeconfigs["admin"]
	cfg, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	p := newLoadgen(t, "record", "cluster", "--kubeconfig", kubeconfig, "--for", "8s", "--out", filepath.Join(t.TempDir(), "cluster.recording.gz"), "-o", "json")
	var stdout bytes.Buffer
	p.cmd.Stdout = &stdout
	p.start()
	p.awaitLine("watching changes for 8s")
	maps := client.CoreV1().ConfigMaps("default")
	if _, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "recorded"}, Data: map[string]string{"a": "b"}}, metav1.CreateOptions{FieldManager: "shop"}); err != nil {
		t.Fatal(err)
	}
	if err := maps.Delete(t.Context(), "recorded", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if code := p.wait(); code != exitcode.Pass {
		t.Fatalf("exit code %d\n%q", code, p.said)
	}
	var r capture.Result
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, g := range r.Summary.Groups {
		if g.Resource == "configmaps" {
			found[g.Verb] = r.Header.Actors[g.Actor].UserAgent
		}
	}
	if found["create"] != "shop" || found["delete"] != "unknown" {
		t.Errorf("writes of ConfigMaps %v, want a create by shop and a delete", found)
	}
	counted := false
	for _, c := range r.Header.Snapshot.Resources {
		counted = counted || c.Resource == "namespaces" && c.Objects >= 4 && c.Bytes.P50 > 0
	}
	if !counted {
		t.Errorf("snapshot %+v", r.Header.Snapshot)
	}
}
