package deploy_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/deploy/deploytest"
)

// The page about compose.yaml documents each variable of the file and the address of each service.
func TestDoc(t *testing.T) {
	root := deploytest.Root(t)
	text, err := os.ReadFile(filepath.Join(root, "docs", "how-to", "grafana-prometheus.md"))
	if err != nil {
		t.Fatal(err)
	}
	file, err := os.ReadFile(filepath.Join(root, "deploy", "compose", "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`\$\{([A-Z_]+)`).FindAllStringSubmatch(string(file), -1) {
		if !strings.Contains(string(text), m[1]+"=") {
			t.Errorf("docs/how-to/grafana-prometheus.md does not say how to set %s", m[1])
		}
	}
	for name, s := range compose(t).Services {
		if address := "http://" + listens(s); !strings.Contains(string(text), address) {
			t.Errorf("docs/how-to/grafana-prometheus.md does not say that %s is at %s", name, address)
		}
	}
}
