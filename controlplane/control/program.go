package control

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/stormglass/stormglass/internal/commandline"
)

// Program describes an executable file of the program controlplane.
type Program struct {
	Path string
	// Revision is the Git revision from which the program was built; "" if unknown.
	Revision string
}

// FindProgram finds the program with the components of release r, next to executable (the controlplane program) or on
// PATH. It runs the program with --version, and fails if the program has the components of another release.
func FindProgram(ctx context.Context, executable string, r Release) (Program, error) {
	name := ReleaseBinary(r)
	path, err := commandline.Find(executable, name)
	if err != nil {
		return Program{}, fmt.Errorf("%s is neither next to %s nor on PATH", name, executable)
	}
	said, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return Program{}, fmt.Errorf("%s --version: %w", path, err)
	}
	revision, ok := Described(string(said), r)
	if !ok {
		return Program{}, fmt.Errorf("%s --version prints %s, but a program with %s is needed", path, strings.TrimSpace(string(said)), r)
	}
	return Program{path, revision}, nil
}
