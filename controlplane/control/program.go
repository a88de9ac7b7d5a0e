package control

import (
	"context"
	"fmt"
	"os/exec"
	"strings"

	"github.com/stormglass/stormglass/internal/commandline"
)

// Program is a controlplane program.
type Program struct {
	Path string
	// Revision that it was built from; "" if it does not say.
	Revision string
}

// FindProgram finds the program with the components of a release other than that of executable, the controlplane program: beside it or on PATH. It is asked what
// it is; one of another release is an error.
func FindProgram(ctx context.Context, executable string, r Release) (Program, error) {
	name := ReleaseBinary(r)
	path, err := commandline.Find(executable, name)
	if err != nil {
		return Program{}, fmt.Errorf("%s is neither beside %s nor on PATH", name, executable)
	}
	said, err := exec.CommandContext(ctx, path, "--version").Output()
	if err != nil {
		return Program{}, fmt.Errorf("%s --version: %w", path, err)
	}
	revision, ok := Described(string(said), r)
	if !ok {
		return Program{}, fmt.Errorf("%s is %s, not of %s", path, strings.TrimSpace(string(said)), r)
	}
	return Program{path, revision}, nil
}
