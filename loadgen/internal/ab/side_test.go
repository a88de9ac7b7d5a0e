package ab

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// readEmpty returns an empty scenario.
func readEmpty([]string) (*scenario.Scenario, error) { return &scenario.Scenario{}, nil }

func TestSideIsABinary(t *testing.T) {
	binary := filepath.Join(t.TempDir(), "controlplane")
	if err := os.WriteFile(binary, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	s, err := NewSide(t.Context(), "--b", []string{binary}, nil, readEmpty)
	if err != nil || s.ControlPlane != binary {
		t.Errorf("the side runs %q: %v", s.ControlPlane, err)
	}
}

// A side cannot have two binaries, config files or variants.
func TestSideOfTwoKinds(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("etcd: {members: 3}\n"), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, specs := range [][]string{
		{file("one", 0o700), file("two", 0o700)}, {file("one.yaml", 0o600), file("two.yaml", 0o600)}, {"variant=a", "variant=b"},
	} {
		_, err := NewSide(t.Context(), "--b", specs, nil, readEmpty)
		if want := filepath.Base(specs[0]) + " was already given"; exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", specs, err)
		}
	}
}

// An empty variant name, such as from an unset variable, is refused and does not mean the plain scenario.
func TestSideIsAVariant(t *testing.T) {
	if _, err := NewSide(t.Context(), "--b", []string{"variant="}, nil, readEmpty); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "--b variant=: the name is missing") {
		t.Errorf("%v", err)
	}
}

// Settings apply on top of a config file, and its strings keep their spaces.
func TestSideIsAConfig(t *testing.T) {
	file := filepath.Join(t.TempDir(), "plane.yaml")
	if err := os.WriteFile(file, []byte("# a plane\netcd:\n  members: 3\n  flags: {name: \"two  spaces\"}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := NewSide(t.Context(), "--b", []string{file}, []string{"controlPlane.etcd.members=1"}, readEmpty)
	want := []string{`controlPlane={"etcd":{"flags":{"name":"two  spaces"},"members":3}}`, "controlPlane.etcd.members=1"}
	if err != nil || !slices.Equal(s.Set, want) {
		t.Errorf("%q, want %q: %v", s.Set, want, err)
	}
}

// A program without its executable bit does not count as a config file, and errors in a config file are reported in one
// line.
func TestSideIsWhatItSeems(t *testing.T) {
	dir := t.TempDir()
	for text, want := range map[string]string{
		"\x7fELF\x02\x01":                          "it is not an executable file",
		"#!/bin/sh\nexit 0\n":                      "it is not an executable file",
		"etcd: {members: 3}\netcd: {members: 1}\n": `mapping key "etcd" already defined at line 1`,
		"- a list\n":                               "no control plane settings",
		"plain text":                               "no control plane settings",
		"etcd: {flags: {1: x}}\n":                  "the name of a setting is not a string (write it in quotes)",
		"etcd: [\n":                                "did not find",
	} {
		file := filepath.Join(dir, "plane")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := NewSide(t.Context(), "--b", []string{file}, nil, readEmpty)
		if exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
