package main

import (
	"context"
	"flag"
	"fmt"
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

// planesAtATime is how many tests run beside each other that have a plane of their
// own: they mostly wait. The flag -parallel overrides it.
const planesAtATime = "4"

func (w withPlane) Run() int {
	if err := flag.Set("test.parallel", planesAtATime); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return planetest.Main(w.M, &plane)
}

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
