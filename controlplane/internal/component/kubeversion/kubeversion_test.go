package kubeversion

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/version"
)

// A program built without the Makefile's linker flags, as `go install` builds it, reports its version in all places. A
// version that linker flags set takes precedence.
func TestComponentsHaveAVersionWithoutLinkerFlags(t *testing.T) {
	report := func(ldflags string) (got struct {
		Component, Client version.Info
		Metric            map[string]string
	}) {
		program := filepath.Join(t.TempDir(), "print")
		if out, err := exec.Command("go", "build", "-ldflags", ldflags, "-o", program, "./testdata/print").CombinedOutput(); err != nil {
			t.Fatalf("go build failed: %v\n%s", err, out)
		}
		out, err := exec.Command(program).Output()
		if err == nil {
			err = json.Unmarshal(out, &got)
		}
		if err != nil {
			t.Fatalf("the program failed: %v\n%s", err, out)
		}
		return got
	}
	module, err := exec.Command("go", "list", "-m", "-f", "{{.Version}}", "k8s.io/component-base").Output()
	if err != nil {
		t.Fatal(err)
	}
	want := "v1." + strings.TrimPrefix(strings.TrimSpace(string(module)), "v0.")
	got := report("")
	if c := got.Component; c.GitVersion != want || c.Major != "1" || c.Minor == "" || c.GitTreeState != "archive" || c.GitCommit != "unknown" {
		t.Errorf("version of the components = %+v, want %s", c, want)
	}
	if c := got.Client; c.GitVersion != want || c.GitCommit != "unknown" {
		t.Errorf("version of the clients = %+v, want %s", c, want)
	}
	if got.Metric["git_version"] != want || got.Metric["minor"] != got.Component.Minor {
		t.Errorf("kubernetes_build_info = %v, want %s", got.Metric, want)
	}
	const flag = "-X k8s.io/component-base/version.gitVersion=v1.2.3 -X k8s.io/component-base/version.gitMajor=9"
	if got := report(flag); got.Component.GitVersion != "v1.2.3" || got.Metric["git_version"] != "v1.2.3" || got.Component.Major != "9" {
		t.Errorf("versions with %s = %+v, want v1.2.3 and major version 9", flag, got)
	}
}

func TestRelease(t *testing.T) {
	base := func(version string, replace *debug.Module) []*debug.Module {
		return []*debug.Module{{Path: "k8s.io/api", Version: "v0.1.0"}, {Path: "k8s.io/component-base", Version: version, Replace: replace}}
	}
	for _, c := range []struct {
		linked []*debug.Module
		want   string
		ok     bool
	}{
		{base("v0.37.1", nil), "v1.37.1", true},
		{base("v0.0.0", &debug.Module{Path: "k8s.io/component-base", Version: "v0.36.3"}), "v1.36.3", true},
		{base("v0.38.0-rc.1", nil), "v1.38.0-rc.1", true},
		{base("(devel)", nil), "v1.", false},
		{nil, "", false},
	} {
		if got, ok := release(c.linked); ok != c.ok || ok && got != c.want {
			t.Errorf("release(%v) = %q %v, want %q %v", c.linked, got, ok, c.want, c.ok)
		}
	}
}
