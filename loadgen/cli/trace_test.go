package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/planetest"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
)

const planted = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: planted
record: {interval: 1s}
controlPlane: {networkFaults: "on"}
background:
  - {name: create, kind: requests, verb: create, resource: configmaps, rate: 10/s}
phases:
  - {name: calm, for: 3s}
  - {name: webhook, for: 4s, faults: [{kind: webhook, resource: configmaps, delay: 30ms}]}
  - {name: mutating, for: 4s, faults: [{kind: webhook, resource: configmaps, delay: 30ms, mutates: true}]}
  - {name: fsync, for: 4s, faults: [{kind: slowFsync, component: etcd, delay: 25ms}]}
  - {name: link, for: 4s, faults: [{kind: networkDelay, component: kube-apiserver-0, peers: [etcd-0], delay: 20ms}]}
  - {name: after, for: 1s}
`

// TestPlantedDelays: a delay appears in the span of the part that was delayed, in the fastest kept trace of its phase. The
// fastest, because other work on the machine delays spans too.
func TestPlantedDelays(t *testing.T) {
	dir := filepath.Join(planetest.Dir(t), "run")
	file := filepath.Join(t.TempDir(), "planted.yaml")
	if err := os.WriteFile(file, []byte(planted), 0o600); err != nil {
		t.Fatal(err)
	}
	startRun(t, file, "--trace=100%", "--out", dir).wait()
	_, all, err := spans.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		phase, process, name string
		planted              float64 // milliseconds
	}{
		{"webhook", "kube-apiserver-0", "HTTP POST", 30},
		{"mutating", "kube-apiserver-0", "HTTP POST", 30},
		{"fsync", "etcd-0", "txn", 25},
		{"link", "kube-apiserver-0", "etcdserverpb.KV/Txn", 2 * 20}, // in each direction
	} {
		var found []float64
		for i := range all {
			if all[i].Phase != c.phase {
				continue
			}
			for _, n := range all[i].Tree().All() {
				if n.Process == c.process && strings.HasPrefix(n.Name, c.name) && n.Critical > 0 {
					found = append(found, float64(n.Critical)/1e6)
				}
			}
		}
		if len(found) == 0 || slices.Min(found) < c.planted || slices.Min(found) > 1.1*c.planted {
			t.Errorf("%s: critical times of %s %s in ms: %.3g; want one from %g to %g", c.phase, c.process, c.name, found, c.planted, 1.1*c.planted)
		}
	}
}
