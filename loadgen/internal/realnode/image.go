package realnode

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/stormglass/stormglass/internal/imagearchive"
)

// sandboxImage is the image of pod sandboxes. Its program runs until it receives a signal.
const sandboxImage = "stormglass.invalid/sandbox:1"

// BuildContainer builds the program of this package's containers (container/main.go) into dir.
func BuildContainer(ctx context.Context, dir string) (program string, err error) {
	program = filepath.Join(dir, "container")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "github.com/stormglass/stormglass/loadgen/internal/realnode/container")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the containers' program: %w\n%s", err, out)
	}
	return program, nil
}

// LoadImage loads an image that contains only a statically linked program (CGO_ENABLED=0). The entry point is /NAME,
// where NAME is the name of the program's file. name is the name of the image, such as "stormglass.invalid/worker:1".
func (n *Node) LoadImage(ctx context.Context, program, name string) error {
	archive := filepath.Join(n.dir, "image.tar")
	defer os.Remove(archive)
	if err := imagearchive.Write(archive, imagearchive.Program(name, program)); err != nil {
		return fmt.Errorf("create image %s: %w", name, err)
	}
	err := n.spaces.run(ctx, "ctr", "-a", runtimeSocket, "-n", "k8s.io", "images", "import", "--snapshotter", "native", archive)
	if err != nil {
		return fmt.Errorf("import image %s: %w", name, err)
	}
	return nil
}
