package realplane

import (
	"testing"

	"github.com/stormglass/stormglass/deploy/deploytest"
)

// The controlplane commands in docs/how-to exist and have the documented flags. Unknown flags are errors even with
// --help, because flags are parsed first.
func TestDocumentedCommands(t *testing.T) {
	for _, args := range deploytest.Documented(t, "controlplane") {
		if out, err := deploytest.Run(t, t.TempDir(), plane.Binary, append(args, "--help")...); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}
