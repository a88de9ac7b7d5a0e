package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sync/semaphore"

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

// sharedPlane is held by the test that uses the shared plane.
var sharedPlane sync.Mutex

// useSharedPlane makes a test parallel with those on planes of their own, and gives it the
// shared plane for itself: what runs leave behind there is counted.
func useSharedPlane(t *testing.T) {
	t.Helper()
	t.Parallel()
	sharedPlane.Lock()
	t.Cleanup(sharedPlane.Unlock)
}

// room is for planes beside the shared one: two wait long enough to share two cores. One
// with several etcd members needs all of it.
var room = semaphore.NewWeighted(2)

// awaitRoom waits until there is room for a plane, which the test's end makes again.
func awaitRoom(t *testing.T, planes int64) {
	t.Helper()
	if err := room.Acquire(t.Context(), planes); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { room.Release(planes) })
}

// Run lets tests be parallel that only wait for room.
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
