package cluster

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
)

// A kubeconfig belongs to a plane only at the path where `controlplane up` wrote it.
func TestTaintsFollowTheTarget(t *testing.T) {
	s := newStub(t)
	text, err := os.ReadFile(s.kubeconfig(t, goodToken))
	if err != nil {
		t.Fatal(err)
	}
	planeAt := func(server string) string {
		dir := t.TempDir()
		path := filepath.Join(dir, "kubeconfigs", "admin.kubeconfig")
		described, err := json.Marshal(control.Cluster{
			Schema: control.ClusterSchema, Dir: dir, Server: server, Kubeconfigs: map[string]string{"admin": path},
		})
		if err != nil {
			t.Fatal(err)
		}
		for file, data := range map[string][]byte{path: text, filepath.Join(dir, "kubeconfigs", "other"): text, filepath.Join(dir, control.ClusterFile): described} {
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return path
	}
	ours := planeAt(s.URL)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(ours, link); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, path string
		alone      bool
		tainted    bool
	}{
		{"nodes on our plane", ours, true, false},
		{"by a link", link, true, false},
		{"a run on our plane", ours, false, true},
		{"a copy elsewhere", file(t, "k", string(text)), true, true},
		{"another file next to it", filepath.Join(filepath.Dir(ours), "other"), true, true},
		{"a plane of another address", planeAt("https://127.0.0.1:1"), true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			target, err := FromKubeconfig(t.Context(), Kubeconfig{Files: c.path}, "r1", parsed(t, "nodes: {count: 1}\n"+quiet), func(string) {})
			if err != nil {
				t.Fatal(err)
			}
			target.NodesAlone = c.alone
			if tainted := len(target.Taints()) > 0; tainted != c.tainted {
				t.Errorf("tainted: %v", tainted)
			}
			text := target.Plan().String()
			if strings.Contains(text, "any pod may be scheduled to them") == c.tainted {
				t.Errorf("the plan is wrong about the taint:\n%s", text)
			}
		})
	}
}
