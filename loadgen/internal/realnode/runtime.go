package realnode

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// runtimeSocket is the path of containerd's socket in the node.
const runtimeSocket = "/run/containerd.sock"

const runtimeConfig = `version = 2
root = "%[1]s/containerd"
state = "%[1]s/containerd-state"
[grpc]
address = "` + runtimeSocket + `"
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "` + sandboxImage + `"
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
[plugins."io.containerd.grpc.v1.cri".containerd]
snapshotter = "native"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "%[2]s"
conf_dir = "%[1]s/cni"
`

const networkConfig = `{"cniVersion": "0.4.0", "name": "realnode", "plugins": [{"type": "ptp",
"ipam": {"type": "host-local", "dataDir": "%s/addresses", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
`

// startRuntime starts containerd and loads the sandbox image.
func (n *Node) startRuntime(ctx context.Context, plugins string) error {
	if err := os.MkdirAll(filepath.Join(n.dir, "cni"), 0o700); err != nil {
		return err
	}
	if _, err := n.file("cni/10-realnode.conflist", fmt.Sprintf(networkConfig, n.dir, n.link.pods)); err != nil {
		return err
	}
	config, err := n.file("containerd.toml", fmt.Sprintf(runtimeConfig, n.dir, plugins))
	if err != nil {
		return err
	}
	if _, err := n.spaces.start(filepath.Join(n.dir, "containerd.log"), "containerd", "--config", config); err != nil {
		return err
	}
	err = wait.PollUntilContextTimeout(ctx, 100*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return n.spaces.within(func() error {
			conn, err := net.Dial("unix", runtimeSocket)
			if err == nil {
				conn.Close()
			}
			return err
		}) == nil, nil
	})
	if err != nil {
		return fmt.Errorf("containerd does not listen: %w", err)
	}
	sandbox, err := BuildContainer(ctx, n.dir)
	if err != nil {
		return err
	}
	return n.LoadImage(ctx, sandbox, sandboxImage)
}

// containers returns the IDs of the containers that existed when the runtime ended.
func (n *Node) containers() (ids []string) {
	entries, err := os.ReadDir(filepath.Join(n.dir, "containerd-state", "io.containerd.runtime.v2.task", "k8s.io"))
	if err != nil {
		return nil // the runtime had no containers
	}
	for _, e := range entries {
		ids = append(ids, e.Name())
	}
	return ids
}

// cgroups is the root directory of cgroups. With cgroups v1 it contains a directory per controller.
const cgroups = "/sys/fs/cgroup"

// removeCgroups removes the cgroups of containers. The runtime could not remove them, because it was killed together
// with the containers.
func removeCgroups(ids []string) error {
	var found []string
	err := filepath.WalkDir(cgroups, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // the cgroup of another container was removed in the meantime
			return nil
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(ids, d.Name()):
			found = append(found, path)
		}
		return nil
	})
	errs := []error{err}
	for _, path := range slices.Backward(found) { // children first
		errs = append(errs, os.Remove(path))
	}
	parents, err := filepath.Glob(cgroups + "/*/k8s.io")
	for _, path := range parents {
		_ = os.Remove(path) // fails if it contains other cgroups
	}
	errs = append(errs, err)
	return errors.Join(errs...)
}
