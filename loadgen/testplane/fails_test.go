package testplane_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/testplane"
)

// recorder is a test whose failures are kept.
type recorder struct {
	testing.TB
	said []string
}

func (r *recorder) Errorf(format string, args ...any) {
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

func (r *recorder) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

func (r *recorder) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }

// failures runs a test and returns the messages with which it fails.
func failures(t *testing.T, test func(testing.TB)) string {
	t.Helper()
	r := &recorder{TB: t}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		test(r)
	}()
	<-ended
	return strings.Join(r.said, "\n")
}

// A test fails with a line for each reason for which its scenario does not pass.
func TestFailsWithTheReasons(t *testing.T) {
	file := filepath.Join(t.TempDir(), "slow.yaml")
	text := `{apiVersion: stormglass/v1alpha1, kind: Scenario, name: slow, phases: [{name: calm, for: 1s}],
gates: [{name: young, expr: 'max(process_start_time_seconds{job="kube-apiserver"})', max: 1}, {name: other, expr: 'max(process_start_time_seconds{job="other"})', max: 1}]}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	said := failures(t, func(t testing.TB) { plane.Run(t, file) })
	for _, want := range []string{"scenario slow: fail", "scenario slow: young: ", "scenario slow: other: no data: "} {
		if !strings.Contains(said, want) {
			t.Errorf("%q is missing in\n%s", want, said)
		}
	}
}

// A mistake in the use of the package fails the test with one line that says what to write.
func TestMisuseIsOneLine(t *testing.T) {
	custom := filepath.Join(t.TempDir(), "custom.yaml")
	if err := os.WriteFile(custom, []byte(`{apiVersion: stormglass/v1alpha1, kind: Scenario, name: c,
controlPlane: {etcd: {members: 3}}, phases: [{name: p, for: 1s}], gates: [{name: d, objective: phase-duration, max: 1m}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	var unstarted testplane.Plane
	for want, test := range map[string]func(testing.TB){
		"testplane: the control plane was not started: write func TestMain": func(t testing.TB) { unstarted.Config(t) },
		`testplane: no scenario "rolout-demo" (`:                            func(t testing.TB) { plane.Run(t, "rolout-demo") },
		"scenario c: " + custom + ":2: controlPlane.etcd.members: the control plane in " + plane.Dir(t) + ", which was started before the run, does not have this setting (start the control plane with this setting, or leave the setting out)": func(t testing.TB) { plane.Run(t, custom) },
	} {
		if said := failures(t, test); !strings.HasPrefix(said, want) || strings.Contains(said, "\n") {
			t.Errorf("got  %s\nwant %s", said, want)
		}
	}
}

// endEnv makes this program end in its first test, in a way that leaves no time to stop anything.
const endEnv = "TESTPLANE_END"

// TestEndsEarly is run by TestPlaneEndsWithTheProcess in a separate process.
func TestEndsEarly(t *testing.T) {
	how := os.Getenv(endEnv)
	if how == "" {
		return
	}
	fmt.Println("plane", plane.Dir(t))
	switch how {
	case "exit":
		os.Exit(3)
	case "panic":
		panic("of a test")
	}
}

// The plane ends with the process of the test, even if the process crashes.
func TestPlaneEndsWithTheProcess(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, how := range []string{"exit", "panic"} {
		t.Run(how, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestEndsEarly$")
			cmd.Env = append(os.Environ(), endEnv+"="+how, testplane.BinaryEnv+"="+plane.Binary, "TMPDIR="+t.TempDir())
			out, err := cmd.Output()
			if err == nil {
				t.Fatalf("the process exited with code 0: %s", out)
			}
			dir := ""
			for lines := bufio.NewScanner(strings.NewReader(string(out))); lines.Scan(); {
				if after, ok := strings.CutPrefix(lines.Text(), "plane "); ok {
					dir = after
				}
			}
			if dir == "" {
				t.Fatalf("the plane did not start: %v\n%s", err, out)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for tick := time.NewTicker(20 * time.Millisecond); ; {
				used, err := control.InUse(dir)
				if err == nil && !used {
					return
				}
				select {
				case <-tick.C:
				case <-ctx.Done():
					t.Fatalf("the plane in %s is still there: %v", dir, err)
				}
			}
		})
	}
}
