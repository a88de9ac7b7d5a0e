package containers

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/stormglass/stormglass/deploy/deploytest"
)

// containerd runs containers with a separate containerd in a new PID and mount namespace, so that containers and mounts
// end together with that containerd.
type containerd struct {
	argv   []string
	socket string
	daemon *Container
}

const containerdConfig = `version = 2
root = "%[1]s/root"
state = "%[1]s/state"
disabled_plugins = ["io.containerd.grpc.v1.cri"]
[grpc]
address = "%[1]s/socket"
`

// listensWithin is the maximum time that containerd may take to start.
const listensWithin = 30 * time.Second

func openContainerd(ctx context.Context, dir string) (kind, error) {
	config, socket := filepath.Join(dir, "containerd.toml"), filepath.Join(dir, "socket")
	if err := os.WriteFile(config, fmt.Appendf(nil, containerdConfig, dir), 0o600); err != nil {
		return nil, err
	}
	daemon, err := start("containerd", filepath.Join(dir, "containerd.log"),
		[]string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "containerd", "--config", config}, syscall.SIGKILL) // unshare blocks SIGTERM
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, listensWithin)
	defer cancel()
	for {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			conn.Close()
			return containerd{[]string{"ctr", "--address", socket, "--namespace", "stormglass"}, socket, daemon}, nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
			continue
		case <-daemon.Done():
		case <-ctx.Done():
		}
		_ = daemon.end(syscall.SIGKILL) // an error means that it has already ended
		return nil, fmt.Errorf("containerd does not listen: %w\n%s", err, daemon.Log())
	}
}

func (c containerd) command(args ...string) []string {
	return append(c.argv[:len(c.argv):len(c.argv)], args...)
}

func (c containerd) load(ctx context.Context, archive string) error {
	_, err := output(ctx, c.command("images", "import", "--snapshotter", "native", archive))
	return err
}

func (c containerd) run(name string, s deploytest.Service, entrypoint []string) []string {
	argv := c.command("run", "--rm", "--net-host", "--snapshotter", "native", "--cgroup", "")
	for _, v := range environment(s) {
		argv = append(argv, "--env", v)
	}
	for _, v := range s.Volumes {
		options := "rbind:rw"
		if v.ReadOnly {
			options = "rbind:ro"
		}
		argv = append(argv, "--mount", "type=bind,src="+v.Source+",dst="+v.Target+",options="+options)
	}
	for _, t := range s.Tmpfs {
		target, given, _ := strings.Cut(t, ":")
		options := "nosuid:nodev:mode=1777"
		if given != "" {
			options += ":" + strings.ReplaceAll(given, ",", ":")
		}
		argv = append(argv, "--mount", "type=tmpfs,src=tmpfs,dst="+target+",options="+options)
	}
	argv = append(argv, "docker.io/"+strings.TrimPrefix(s.Image, "docker.io/"), name)
	return append(append(argv, entrypoint...), s.Command...) // with arguments, ctr does not run the image's entry point
}

// userOfImage returns true, because version 1 of ctr has no flag for the user.
func (containerd) userOfImage() bool { return true }

func (c containerd) close() error {
	if err := c.daemon.end(syscall.SIGKILL); err != nil {
		return err
	}
	// The kernel kills containerd when unshare ends. Wait until containerd has ended.
	err := wait.PollUntilContextTimeout(context.Background(), 20*time.Millisecond, 2*time.Second, true, func(context.Context) (bool, error) {
		conn, err := net.Dial("unix", c.socket)
		if err != nil {
			return true, nil
		}
		return false, conn.Close()
	})
	if err != nil {
		return fmt.Errorf("containerd has not ended: %w", err)
	}
	return nil
}
