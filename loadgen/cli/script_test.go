package cli

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/stormglass/stormglass/internal/planetest"
)

// plane is the shared control plane. For loadgen it is a user's own cluster.
var plane planetest.Plane

// TestMain lets the scripts call this test binary as `loadgen`.
func TestMain(m *testing.M) {
	testscript.Main(withPlane{m}, map[string]func(){
		"loadgen": func() {
			os.Exit(execute(context.Background(), os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
		},
	})
}

func TestPrograms(t *testing.T) { planetest.Programs(t) }

type withPlane struct{ *testing.M }

// turns limits the number of tests that run at the same time.
type turns chan struct{}

// Two cores are enough for one incident with several etcd members or two incidents with one, one other run on its own plane,
// and one test on the shared plane.
var (
	incidentTurns = make(turns, 2)
	runTurns      = make(turns, 1)
	sharedTurns   = make(turns, 1)
)

// take waits for a turn. The end of the test releases it.
func (c turns) take(t *testing.T) {
	t.Helper()
	c <- struct{}{}
	t.Cleanup(func() { <-c })
}

// useSharedPlane runs a test in parallel with tests on their own planes, and gives it exclusive use of the shared plane: the
// test counts the objects that runs leave there.
func useSharedPlane(t *testing.T) {
	t.Helper()
	t.Parallel()
	sharedTurns.take(t)
}

// Run makes tests parallel that only wait for their turn.
func (w withPlane) Run() int {
	if err := flag.Set("test.parallel", "64"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return planetest.Main(w.M, &plane)
}

// TestScripts runs the commands of testdata/script and compares their output.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			// exits N COMMAND...: the command ends with exactly that code.
			"exits": exits,
		},
	})
}
