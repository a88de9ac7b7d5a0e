package architecture

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
)

const root = "../.."

// A program with the components of another release is built with a separate module file, which must also contain each
// import of the module: no other build reads it.
func TestModuleFilesOfReleasesAreComplete(t *testing.T) {
	for _, r := range control.Releases() {
		if r == control.Newest() {
			continue
		}
		t.Run(r.Minor, func(t *testing.T) {
			flags := buildFlags(t, r)
			for _, list := range [][]string{
				{"./cmd/controlplane"},                         // make controlplane
				{"-test", "./controlplane/internal/component"}, // make flags
			} {
				args := append(append([]string{"list", "-deps"}, flags...), list...)
				cmd := exec.Command("go", args...)
				cmd.Dir = root
				cmd.Env = append(cmd.Environ(), "GOFLAGS=-mod=readonly", "GOWORK=off")
				var stderr strings.Builder
				cmd.Stderr = &stderr
				out, err := cmd.Output()
				if err != nil {
					t.Fatalf("go %s: %v\n%s(go list -mod=mod %s writes what a module file lacks; read the difference)",
						strings.Join(args, " "), err, stderr.String(), strings.Join(args[1:], " "))
				}
				if !strings.Contains(string(out), "k8s.io/kubernetes/cmd/kube-apiserver/app\n") {
					t.Errorf("go %s lists no kube-apiserver", strings.Join(args, " "))
				}
			}
		})
	}
}

// buildFlags returns the flags of go build with which make builds the program of a release, without the linker flags.
func buildFlags(t *testing.T, r control.Release) []string {
	t.Helper()
	cmd := exec.Command("make", "--no-print-directory", "-n", "controlplane", "VERSION="+r.Minor)
	cmd.Dir = root
	cmd.Env = append(cmd.Environ(), "MAKEFLAGS=")
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("make -n controlplane: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		if _, rest, ok := strings.Cut(line, "go build "); ok {
			flags, _, _ := strings.Cut(rest, "-ldflags")
			if strings.Contains(flags, "-modfile=") {
				return strings.Fields(flags)
			}
		}
	}
	t.Fatalf("make builds %s without a separate module file:\n%s", r.Minor, out)
	return nil
}
