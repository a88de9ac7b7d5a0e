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

// Engine runs containers. What it stores and runs is its own: it neither sees nor changes other containers and images
// of the machine.
type Engine struct {
	kind
	dir     string
	running []*Container
}

// kind runs containers: by podman, or by containerd.
type kind interface {
	// load takes an image, from the archive it was written to, for a service's container.
	load(ctx context.Context, archive string) error
	// run returns the command that runs a container in the foreground, removes it when it ends, and passes signals on.
	// entrypoint is the entrypoint of the image.
	run(name string, s deploytest.Service, entrypoint []string) []string
	// userOfImage reports whether a container always has the user of its image, even if the service sets another one.
	userOfImage() bool
	// close ends the processes that a killed command left.
	close() error
}

// Names lists the engines in the order in which Open prefers them.
func Names() []string { return []string{"podman", "containerd"} }

// Open prepares an engine, by its name or the first that is installed, with its store in dir, which must not exist.
// Close removes it.
func Open(ctx context.Context, name, dir string) (*Engine, error) {
	if name == "" {
		for _, name = range Names() {
			if _, err := exec.LookPath(name); err == nil {
				break
			}
		}
	}
	if !slices.Contains(Names(), name) {
		return nil, fmt.Errorf("no container engine is called %q (%s)", name, strings.Join(Names(), ", "))
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

// Start starts a service in a container of the image, as the compose file configures it. It refuses a service with a
// field that it does not support.
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

// check returns an error for a service that no container here would be true to.
func check(s deploytest.Service) error {
	switch {
	case s.NetworkMode != "host":
		return fmt.Errorf("network_mode %q: only host is run here", s.NetworkMode)
	case len(s.Entrypoint) > 0:
		return fmt.Errorf("entrypoint %q: only the image's entrypoint is run here", s.Entrypoint)
	}
	for _, v := range s.Volumes {
		if v.Type != "bind" || strings.ContainsRune(v.Source+v.Target, ',') {
			return fmt.Errorf("volume %s: only directories and files of this machine without a comma are mounted here", v.Target)
		}
		if _, err := os.Stat(v.Source); err != nil {
			return fmt.Errorf("volume %s: %w", v.Target, err)
		}
	}
	return nil
}

// Close stops the containers, the last one first, and removes all that the engine stored.
func (e *Engine) Close() error {
	var errs []error
	for _, c := range slices.Backward(e.running) {
		errs = append(errs, c.Stop())
	}
	errs = append(errs, e.close(), os.RemoveAll(e.dir))
	return errors.Join(errs...)
}

// output runs a command; its error contains the command's output.
func output(ctx context.Context, argv []string) (string, error) {
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(argv, " "), err, out)
	}
	return string(out), nil
}

// environment returns NAME=VALUE of each variable, in the order of names.
func environment(s deploytest.Service) []string {
	var all []string
	for name, value := range s.Environment {
		all = append(all, name+"="+value)
	}
	slices.Sort(all)
	return all
}
