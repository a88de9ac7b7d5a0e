package containers

import (
	"context"
	"path/filepath"

	"github.com/stormglass/stormglass/deploy/deploytest"
)

// podman runs containers with podman and a separate store.
type podman struct{ argv []string }

func openPodman(ctx context.Context, dir string) (kind, error) {
	p := podman{[]string{
		"podman", "--root", filepath.Join(dir, "storage"), "--runroot", filepath.Join(dir, "run"), "--tmpdir", filepath.Join(dir, "tmp"),
		"--storage-driver", "vfs", "--cgroup-manager", "cgroupfs", "--runtime", "runc", // crun does not support hybrid cgroups
	}}
	_, err := output(ctx, p.command("version"))
	return p, err
}

func (p podman) command(args ...string) []string {
	return append(p.argv[:len(p.argv):len(p.argv)], args...)
}

func (p podman) load(ctx context.Context, archive string) error {
	_, err := output(ctx, p.command("load", "--quiet", "--input", archive))
	return err
}

func (p podman) run(name string, s deploytest.Service, _ []string) []string {
	argv := p.command("run", "--rm", "--pull", "never", "--name", name, "--network", s.NetworkMode,
		"--ulimit", "nofile=1024:1024", "--ulimit", "nproc=1024:1024") // higher limits need CAP_SYS_RESOURCE
	if s.User != "" {
		argv = append(argv, "--user", s.User)
	}
	for _, v := range environment(s) {
		argv = append(argv, "--env", v)
	}
	for _, v := range s.Volumes {
		mount := "type=bind,source=" + v.Source + ",destination=" + v.Target
		if v.ReadOnly {
			mount += ",readonly=true"
		}
		argv = append(argv, "--mount", mount)
	}
	for _, t := range s.Tmpfs {
		argv = append(argv, "--tmpfs", t)
	}
	return append(append(argv, s.Image), s.Command...)
}

func (podman) userOfImage() bool { return false }

func (p podman) close() error {
	_, err := output(context.Background(), p.command("rm", "--all", "--force", "--time", "10"))
	return err
}
