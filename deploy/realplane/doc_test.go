package realplane

import (
	"testing"

	"github.com/stormglass/stormglass/deploy/deploytest"
)

// The commands of controlplane in docs/how-to exist, with these flags: flags
// are read before --help is obeyed, and an unknown flag is an error.
func TestDocumentedCommands(t *testing.T) {
	for _, args := range deploytest.Documented(t, "controlplane") {
		if out, err := deploytest.Run(t, t.TempDir(), plane.Binary, append(args, "--help")...); err != nil {
			t.Errorf("%v: %v\n%s", args, err, out)
		}
	}
}
