package containers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/stormglass/stormglass/deploy/deploytest"
	"github.com/stormglass/stormglass/internal/imagearchive"
)

// Engine runs containers. It has a separate store for images and containers, so that it neither sees nor changes the
// images of the machine.
type Engine struct {
	kind
	dir     string
	running []*Container
}

// kind is the part of an Engine that depends on its program, podman or containerd.
type kind interface {
	// load loads the image in an archive into the store.
	load(ctx context.Context, archive string) error
	// run returns a command that runs a container in the foreground, passes signals on to it, and removes it when it
	// ends. entrypoint is the entrypoint of the image.
	run(name string, s deploytest.Service, entrypoint []string) []string
	// userOfImage reports whether a container always runs as the user of its image, even if the service specifies another user.
	userOfImage() bool
	// close ends the processes that killed commands have left behind.
	close() error
}

// Names returns the names of the engines, in the order in which Open prefers them.
func Names() []string { return []string{"podman", "containerd"} }

// Open prepares the engine with the given name. If name is empty, it takes the first engine in Names that is installed.
// The engine's store is in dir, which must not exist yet; Close removes dir.
func Open(ctx context.Context, name, dir string) (*Engine, error) {
	if name == "" {
		for _, name = range Names() {
			if _, err := exec.LookPath(name); err == nil {
				break
			}
		}
	}
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("unknown container engine %q (%s)", name, strings.Join(Names(), ", "))
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	open := openPodman
	if name == "containerd" {
		open = openContainerd
	}
	k, err := open(ctx, dir)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%w (Debian and Ubuntu: apt-get install podman runc)", err), os.RemoveAll(dir))
	}
	return &Engine{kind: k, dir: dir}, nil
}

// Start starts a service of the compose file in a container of image. It fails if the service uses a setting that this
// package does not support.
func (e *Engine) Start(ctx context.Context, name string, s deploytest.Service, image imagearchive.Image) (*Container, error) {
	if err := check(s); err != nil {
		return nil, fmt.Errorf("service %s: %w", name, err)
	}
	if image.Name != s.Image {
		return nil, fmt.Errorf("service %s: its image is %s, not %s", name, s.Image, image.Name)
	}
	if e.userOfImage() && s.User != "" {
		image.User = s.User
	}
	archive := filepath.Join(e.dir, name+".tar")
	defer os.Remove(archive)
	if err := imagearchive.Write(archive, image); err != nil {
		return nil, fmt.Errorf("image %s: %w", image.Name, err)
	}
	if err := e.load(ctx, archive); err != nil {
		return nil, fmt.Errorf("image %s: %w", image.Name, err)
	}
	c, err := start(name, filepath.Join(e.dir, name+".log"), e.run(name, s, image.Entrypoint), syscall.SIGTERM)
	if err == nil {
		e.running = append(e.running, c)
	}
	return c, err
}

// check returns an error for a service with a setting that this package does not support.
func check(s deploytest.Service) error {
	switch {
	case s.NetworkMode != "host":
		return fmt.Errorf("network_mode %q: only host is supported here", s.NetworkMode)
	case len(s.Entrypoint) > 0:
		return fmt.Errorf("entrypoint %q: only the image's entrypoint is supported here", s.Entrypoint)
	}
	for _, v := range s.Volumes {
		if v.Type != "bind" || strings.ContainsRune(v.Source+v.Target, ',') {
			return fmt.Errorf("volume %s: only files and directories of this machine are supported here, without a comma in their paths", v.Target)
		}
		if _, err := os.Stat(v.Source); err != nil {
			return fmt.Errorf("volume %s: %w", v.Target, err)
		}
	}
	return nil
}

// Close stops the containers, the last one first, and removes the engine's store.
func (e *Engine) Close() error {
	var errs []error
	for _, c := range slices.Backward(e.running) {
		errs = append(errs, c.Stop())
	}
	errs = append(errs, e.close(), os.RemoveAll(e.dir))
	return errors.Join(errs...)
}

// output runs a command and returns its output. The error contains the output too.
func output(ctx context.Context, argv []string) (string, error) {
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
	}
	return string(out), nil
}

// environment returns the environment variables of a service as NAME=VALUE, sorted by name.
func environment(s deploytest.Service) []string {
	var all []string
	for name, value := range s.Environment {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	return all
}
