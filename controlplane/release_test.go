package controlplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
)

// TestProgramOfAnotherRelease checks that findProgram finds the program of another release next to this one and checks
// its versions, and that stale warns if it was built from another revision.
func TestProgramOfAnotherRelease(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("PATH", dir)
	older, _ := control.ReleaseOf("1.36")
	executable, own := filepath.Join(dir, "controlplane"), "0123456789ab"
	if _, err := findProgram(t.Context(), executable, older); err == nil || err.Error() != "controlplane-1.36 is neither next to "+executable+" nor on PATH" {
		t.Errorf("findProgram without a program: error %v", err)
	}
	for name, c := range map[string]struct{ says, wrong, doubt string }{
		"of this revision":    {"with Kubernetes v1.36.3 and etcd 3.6.14, built from 0123456789ab", "", ""},
		"of another revision": {"with Kubernetes v1.36.3 and etcd 3.6.14, built from ba9876543210", "", "was built from revision ba9876543210, but this program was built from 0123456789ab"},
		"of none":             {"with Kubernetes v1.36.3 and etcd 3.6.14", "", "was built from an unknown revision, but this program was built from 0123456789ab"},
		"of another release":  {"with Kubernetes v1.35.4 and etcd 3.6.14, built from 0123456789ab", "but a program with Kubernetes v1.36.3 and etcd 3.6.14 is needed", ""},
		"of older code":       {"with Kubernetes v1.36.1 and etcd 3.6.14, built from 0123456789ab", "but a program with Kubernetes v1.36.3 and etcd 3.6.14 is needed", ""},
		"of another program":  {"7", "but a program with Kubernetes v1.36.3 and etcd 3.6.14 is needed", ""},
	} {
		script := "#!/bin/sh\necho controlplane version " + c.says + "\n"
		if err := os.WriteFile(filepath.Join(dir, "controlplane-1.36"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		found, err := findProgram(t.Context(), executable, older)
		if c.wrong != "" {
			if err == nil || !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%s: findProgram returned %v", name, err)
			}
			continue
		}
		doubt := stale(found, own, older)
		if err != nil || (doubt == "") != (c.doubt == "") || !strings.Contains(doubt, c.doubt) {
			t.Errorf("%s: warning %q, error %v", name, doubt, err)
		}
		if doubt != "" && !strings.HasSuffix(doubt, "(make controlplane VERSION=1.36 builds it)") {
			t.Errorf("%s: the warning does not contain the command that builds the program: %q", name, doubt)
		}
		if doubt := stale(found, "", older); doubt != "" {
			t.Errorf("%s: stale warns although this program's own revision is unknown: %s", name, doubt)
		}
	}
}
