package main

import (
	"context"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stormglass/stormglass/internal/planetest"
)

// plane is the shared control plane: a user's own cluster, as far as loadgen
// can tell.
var plane planetest.Plane

// TestMain lets the scripts call this test binary as `loadgen`.
func TestMain(m *testing.M) {
	testscript.Main(withPlane{m}, map[string]func(){
		"loadgen": func() {
			os.Exit(run(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

type withPlane struct{ *testing.M }

func (w withPlane) Run() int { return planetest.Main(w.M, &plane) }

// TestScripts tells what a user types and reads.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// exits N COMMAND...: the command ends with exactly that code.
			"exits": exits,
		},
	})
}
