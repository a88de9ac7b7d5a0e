package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/deploy/deploytest"
)

// What docs/deploy.md links to is there, and what compose.yaml asks for and
// listens on is said in it.
func TestDoc(t *testing.T) {
	root := deploytest.Root(t)
	text, err := os.ReadFile(filepath.Join(root, "docs", "deploy.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`\]\(([^:)#]+)\)`).FindAllStringSubmatch(string(text), -1) {
		if _, err := os.Stat(filepath.Join(root, "docs", filepath.FromSlash(m[1]))); err != nil {
			t.Error(err)
		}
	}
	file, err := os.ReadFile(filepath.Join(root, "deploy", "compose", "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`\$\{([A-Z_]+)`).FindAllStringSubmatch(string(file), -1) {
		if !strings.Contains(string(text), m[1]+"=") {
			t.Errorf("docs/deploy.md does not say how to set %s", m[1])
		}
	}
	for name, s := range compose(t).Services {
		if address := "http://" + listens(s); !strings.Contains(string(text), address) {
			t.Errorf("docs/deploy.md does not say that %s is at %s", name, address)
		}
	}
}
