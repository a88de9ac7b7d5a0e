package testplane

import (
	"strings"
	"testing"
)

// Without the program controlplane one line says how to get it.
func TestNoProgram(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, c := range []struct {
		named, env, want string
	}{
		{want: "the program controlplane is missing: set $STORMGLASS_CONTROLPLANE to its path, or put it on PATH (`make build` in a checkout of Stormglass creates bin/controlplane"},
		{env: "/nowhere/controlplane", want: "$STORMGLASS_CONTROLPLANE: /nowhere/controlplane: no such file or directory (`make build`"},
		{named: "/nowhere/else", env: "/nowhere/controlplane", want: "Plane.Binary: /nowhere/else: no such file or directory (`make build`"},
	} {
		t.Setenv(BinaryEnv, c.env)
		p := Plane{Binary: c.named}
		if _, err := p.main(func() int { return 0 }); err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
}
