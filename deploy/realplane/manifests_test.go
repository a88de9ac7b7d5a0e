package realplane

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/stormglass/stormglass/deploy"
	"github.com/stormglass/stormglass/deploy/deploytest"
)

// kinds are the operator's kinds that the manifests use.
var kinds = []string{"prometheusrules", "servicemonitors", "scrapeconfigs"}

// With the operator's CRDs, the API server creates every manifest, accepts it a second time, and removes it again.
func TestManifestsAreApplied(t *testing.T) {
	defineKinds(t)
	_, err := kubectl(t, "", "create", "namespace", deploy.Namespace)
	must(t, err)
	base := filepath.Join(deploytest.Root(t), "deploy", "kubernetes")
	for dir, want := range map[string][]string{
		".": {
			"configmap/stormglass-overview-dashboard", "prometheusrule.monitoring.coreos.com/stormglass-etcd",
			"servicemonitor.monitoring.coreos.com/stormglass-kube-apiserver", "service/stormglass-etcd",
		},
		"external-etcd": {"scrapeconfig.monitoring.coreos.com/stormglass-etcd"},
	} {
		built, err := kubectl(t, "", "kustomize", filepath.Join(base, dir))
		must(t, err)
		var applied []string
		for range 2 {
			out, err := kubectl(t, "", "apply", "--server-side", "--output=name", "-k", filepath.Join(base, dir))
			must(t, err)
			applied = strings.Fields(out)
		}
		if objects := strings.Count("\n"+built, "\nkind: "); len(applied) != objects {
			t.Errorf("%s: %d of %d objects were created: %v", dir, len(applied), objects, applied)
		}
		for _, name := range want {
			if !slices.Contains(applied, name) {
				t.Errorf("%s: %s is not among %v", dir, name, applied)
			}
		}
		out, err := kubectl(t, "", "delete", "--output=name", "-k", filepath.Join(base, dir))
		must(t, err)
		if deleted := strings.Fields(out); len(deleted) != len(applied) {
			t.Errorf("%s: removed %v of %v", dir, deleted, applied)
		}
	}
}

// The API server refuses manifests with unknown fields or values, so its acceptance of valid manifests proves
// something.
func TestWrongManifestsAreRefused(t *testing.T) {
	defineKinds(t)
	for want, manifest := range map[string]string{
		`unknown field "spec.groups[0].rules[0].annotation"`: `{"apiVersion": "monitoring.coreos.com/v1", "kind": "PrometheusRule", "metadata": {"name": "x"},
			"spec": {"groups": [{"name": "g", "rules": [{"alert": "A", "expr": "up", "annotation": {}}]}]}}`,
		"spec.scheme: Unsupported value": `{"apiVersion": "monitoring.coreos.com/v1alpha1", "kind": "ScrapeConfig", "metadata": {"name": "x"},
			"spec": {"scheme": "https", "staticConfigs": [{"targets": ["a:1"]}]}}`,
	} {
		_, err := kubectl(t, manifest, "apply", "--dry-run=server", "-f", "-")
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: accepted, or refused for another reason: %v", want, err)
		}
	}
}

// The ServiceMonitor for API servers selects the Service `kubernetes`, which API servers create for themselves, and one
// of its ports.
func TestMonitorFindsTheAPIServer(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(deploytest.Root(t), "deploy", "kubernetes", "scrape", "kube-apiserver.yaml"))
	must(t, err)
	var monitor struct {
		Spec struct {
			NamespaceSelector struct {
				MatchNames []string `yaml:"matchNames"`
			} `yaml:"namespaceSelector"`
			Selector struct {
				MatchLabels map[string]string `yaml:"matchLabels"`
			}
			Endpoints []struct{ Port string }
		}
	}
	must(t, yaml.Unmarshal(text, &monitor))
	out, err := kubectl(t, "", "get", "services", "--namespace", monitor.Spec.NamespaceSelector.MatchNames[0],
		"--selector", labels.FormatLabels(monitor.Spec.Selector.MatchLabels), "--output", "jsonpath={.items[*].spec.ports[*].name}")
	if err != nil || out != monitor.Spec.Endpoints[0].Port {
		t.Errorf("%+v selects the ports %q: %v", monitor.Spec, out, err)
	}
}

// defineKinds applies the CRDs from the operator's Go module, and waits until the API server serves them.
func defineKinds(t *testing.T) {
	t.Helper()
	module := exec.Command("go", "mod", "download", "-json", "github.com/prometheus-operator/prometheus-operator")
	module.Dir = filepath.Join(deploytest.Root(t), "deploy", "testdata", "operator")
	out, err := module.Output()
	if err != nil {
		t.Fatalf("the Prometheus operator's module: %v\n%s", err, out)
	}
	var downloaded struct{ Dir string }
	must(t, json.Unmarshal(out, &downloaded))
	for _, kind := range kinds {
		file := filepath.Join(downloaded.Dir, "example", "prometheus-operator-crd", "monitoring.coreos.com_"+kind+".yaml")
		_, err := kubectl(t, "", "apply", "--server-side", "-f", file)
		must(t, err)
	}
	for _, kind := range kinds {
		var unserved error
		err := wait.PollUntilContextTimeout(t.Context(), 200*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
			_, unserved = kubectl(t, "", "get", kind+".monitoring.coreos.com")
			return unserved == nil, nil
		})
		if err != nil {
			t.Fatalf("%v: %v", err, unserved)
		}
	}
}

// kubectl runs the plane's kubectl as administrator, with stdin, and returns its output. Errors contain the messages of
// kubectl.
func kubectl(t *testing.T, stdin string, args ...string) (string, error) {
	t.Helper()
	cmd := exec.Command(plane.Binary, append([]string{"kubectl", "--dir", plane.Cluster().Dir, "--cache-dir", t.TempDir()}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("kubectl %s: %w\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), nil
}
