package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/plan"
)

// onStep is a Progress that calls itself with each step.
type onStep func(line string)

func (f onStep) Step(line string) { f(line) }
func (f onStep) Live(Snapshot)    {}

// An interrupted start leaves no directory behind, even if the supervisor is killed before it has removed its files.
func TestInterruptedStartLeavesNoDirectory(t *testing.T) {
	dir := t.TempDir()
	program, plane := filepath.Join(dir, "program"), filepath.Join(dir, "plane")
	script := "#!/bin/sh\nmkdir -p " + plane + "/logs && echo up >&2; exec cat <&3\n"
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	_, err := startPlane(ctx, program, plane, plan.Of(parse(t, calm)), nil, console{Progress: onStep(func(line string) {
		if line == "up" {
			cancel(enough)
		}
	})})
	if !errors.Is(err, enough) {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(plane); !os.IsNotExist(err) {
		t.Errorf("the directory of the control plane still exists: %v", err)
	}
}
