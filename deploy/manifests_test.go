package deploy_test

import (
	"bytes"
	"log/slog"
	"os"
	"path"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/alerts"
	"github.com/stormglass/stormglass/deploy"
	"github.com/stormglass/stormglass/deploy/deploytest"
)

// generated returns the manifests that the current sources produce.
func generated(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := deploy.Manifests(os.DirFS(deploytest.Root(t)))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The checked-in manifests equal the generated ones.
func TestManifestsAreCurrent(t *testing.T) {
	base := filepath.Join(deploytest.Root(t), "deploy", "kubernetes")
	want := generated(t)
	entries, err := os.ReadDir(filepath.Join(base, deploy.RulesDir))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if want[path.Join(deploy.RulesDir, e.Name())] == nil {
			t.Errorf("deploy/kubernetes/rules/%s has no source: run go run ./deploy/generate", e.Name())
		}
	}
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(base, filepath.FromSlash(name)))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, text) {
			t.Errorf("deploy/kubernetes/%s differs from its source: run go run ./deploy/generate", name)
		}
	}
}

// object holds the fields of a manifest that these tests read.
type object struct {
	APIVersion string
	Kind       string
	Metadata   struct {
		Name, Namespace     string
		Labels, Annotations map[string]string
	}
	Spec yaml.Node
	Data map[string]string
}

func decode(t *testing.T, text []byte) object {
	t.Helper()
	var o object
	if err := yaml.Unmarshal(text, &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// A PrometheusRule has the groups of its rule file, as Prometheus parses them.
func TestPrometheusRulesHoldTheRules(t *testing.T) {
	files := generated(t)
	loaded, err := alerts.Load()
	if err != nil {
		t.Fatal(err)
	}
	groupsOf := map[string][]rulefmt.RuleGroup{} // by file
	for _, g := range loaded {
		groupsOf[g.File] = append(groupsOf[g.File], g.RuleGroup)
	}
	for file, want := range groupsOf {
		name := strings.ReplaceAll(strings.TrimSuffix(file, ".yaml"), "_", "-")
		o := decode(t, files["rules/"+name+".yaml"])
		if o.Kind != "PrometheusRule" || o.Metadata.Name != "stormglass-"+name {
			t.Fatalf("%s became the %s %q", file, o.Kind, o.Metadata.Name)
		}
		spec, err := yaml.Marshal(&o.Spec)
		if err != nil {
			t.Fatal(err)
		}
		groups, errs := rulefmt.Parse(spec, false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
		if len(errs) > 0 {
			t.Fatalf("%s: %v", name, errs)
		}
		if !reflect.DeepEqual(groups.Groups, want) {
			t.Errorf("the PrometheusRule %s has other groups than %s", name, file)
		}
	}
}

// Kustomize and Objects create a ConfigMap for each dashboard, which contains the file unchanged and has the label that
// Grafana's sidecar selects.
func TestConfigMapsHoldTheDashboards(t *testing.T) {
	boards, err := filepath.Glob(filepath.Join(deploytest.Root(t), "dashboards", "json", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, file := range boards {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		texts[filepath.Base(file)] = string(text)
	}
	files, err := deploy.Objects("test", nil, texts)
	if err != nil {
		t.Fatal(err)
	}
	built := kustomize(t, "../../dashboards").Resources()
	if len(built) != len(texts) {
		t.Errorf("dashboards/kustomization.yaml lists %d of %d dashboards", len(built), len(texts))
	}
	objects := make([]object, 0, 2*len(texts))
	for _, r := range built {
		objects = append(objects, decode(t, []byte(r.MustYaml())))
	}
	for name := range texts {
		objects = append(objects, decode(t, files["dashboards/"+strings.TrimSuffix(name, ".json")+".yaml"]))
	}
	for _, o := range objects {
		file := strings.TrimSuffix(o.Metadata.Name, "-dashboard") + ".json"
		if o.Kind != "ConfigMap" || len(o.Data) != 1 || o.Data[file] == "" || o.Data[file] != texts[file] {
			t.Errorf("%s %s does not contain %s", o.Kind, o.Metadata.Name, file)
		}
		if o.Metadata.Labels["grafana_dashboard"] != "1" || o.Metadata.Annotations["grafana_folder"] != "Stormglass" {
			t.Errorf("a sidecar does not find %s: %v %v", o.Metadata.Name, o.Metadata.Labels, o.Metadata.Annotations)
		}
	}
}

// A source that cannot become a manifest is refused with an error that names it.
func TestBadSources(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"a_b.yaml", "groups:\n", ""},
		{"a_b.yaml", "rules: []\n", `rules/a_b.yaml: the line "groups:" is missing`},
		{"d.json", `{"uid": "d"}`, ""},
		{"d.json", "{", "dashboards/d.json: "},
		{"d.json", `{"uid": "other"}`, `its uid is "other"`},
		{"d.json", "{\n\t\"uid\": \"d\"\n}", "tabs"},
		{"d.json", `{"uid": "d", "x": "` + strings.Repeat("x", 1<<20) + `"}`, "do not fit into a ConfigMap"},
	} {
		rules, dashboards := map[string]string{}, map[string]string{}
		if strings.HasSuffix(test.name, ".json") {
			dashboards[test.name] = test.text
		} else {
			rules[test.name] = test.text
		}
		_, err := deploy.Objects("test", rules, dashboards)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s as %.20q: %v, want %q", test.name, test.text, err, test.want)
		}
	}
	if _, err := deploy.Manifests(fstest.MapFS{}); err == nil || err.Error() != "alerts/*.yaml: no such file" {
		t.Errorf("no rules: %v", err)
	}
}
