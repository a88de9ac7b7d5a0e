package realplane

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/deploy/deploytest"
)

// The commands of docs/deploy.md are controlplane's, with flags that it has:
// flags are read before --help is obeyed, and one that is unknown is an error.
func TestDocumentedCommands(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(deploytest.Root(t), "docs", "deploy.md"))
	must(t, err)
	const program = "bin/controlplane "
	found := 0
	for line := range strings.FieldsFuncSeq(string(text), func(r rune) bool { return r == '\n' || r == '`' }) {
		_, args, ok := strings.Cut(line, program)
		if !ok {
			continue
		}
		found++
		if out, err := deploytest.Run(t, t.TempDir(), plane.Binary, append(strings.Fields(args), "--help")...); err != nil {
			t.Errorf("%s%s: %v\n%s", program, args, err, out)
		}
	}
	if found == 0 {
		t.Errorf("docs/deploy.md has no %q", program)
	}
}
