package deploy_test

import (
	"bytes"
	"io/fs"
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

// generated is the manifests as the sources make them now.
func generated(t *testing.T) map[string][]byte {
	t.Helper()
	files, err := deploy.Manifests(os.DirFS(deploytest.Root(t)))
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// The checked-in manifests equal those generated from the sources.
func TestManifestsAreCurrent(t *testing.T) {
	base := filepath.Join(deploytest.Root(t), "deploy", "kubernetes")
	want := generated(t)
	for _, dir := range []string{deploy.RulesDir, deploy.DashboardsDir} {
		entries, err := os.ReadDir(filepath.Join(base, dir))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if want[path.Join(dir, e.Name())] == nil {
				t.Errorf("deploy/kubernetes/%s/%s has no source: go run ./deploy/generate", dir, e.Name())
			}
		}
	}
	for name, text := range want {
		got, err := os.ReadFile(filepath.Join(base, filepath.FromSlash(name)))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, text) {
			t.Errorf("deploy/kubernetes/%s is not what its source says: go run ./deploy/generate", name)
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

// A ConfigMap has its dashboard byte for byte, under the sidecar's label.
func TestConfigMapsHoldTheDashboards(t *testing.T) {
	files := generated(t)
	boards, err := filepath.Glob(filepath.Join(deploytest.Root(t), "dashboards", "json", "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range boards {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := filepath.Base(file)
		o := decode(t, files["dashboards/"+strings.TrimSuffix(name, ".json")+".yaml"])
		if o.Kind != "ConfigMap" || len(o.Data) != 1 || o.Data[name] != string(text) {
			t.Errorf("the ConfigMap of %s does not hold it", name)
		}
		if o.Metadata.Labels["grafana_dashboard"] != "1" || o.Metadata.Annotations["grafana_folder"] != "Stormglass" {
			t.Errorf("a sidecar does not find %s: %v %v", name, o.Metadata.Labels, o.Metadata.Annotations)
		}
	}
}

// A source that cannot become a manifest is refused, by its name.
func TestBadSources(t *testing.T) {
	good := func() fstest.MapFS {
		return fstest.MapFS{
			"alerts/a_b.yaml":        {Data: []byte("# rules\ngroups:\n  - name: g\n")},
			"dashboards/json/d.json": {Data: []byte("{\"uid\": \"d\"}\n")},
		}
	}
	if _, err := deploy.Manifests(good()); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ file, text, want string }{
		{"alerts/a_b.yaml", "rules: []\n", `alerts/a_b.yaml: there is no line "groups:"`},
		{"alerts/a_b.yaml", "", "alerts/*.yaml: there is no such file"},
		{"dashboards/json/d.json", "", "dashboards/json/*.json: there is no such file"},
		{"dashboards/json/d.json", "{", "dashboards/json/d.json: "},
		{"dashboards/json/d.json", `{"uid": "other"}`, `its uid is "other"`},
		{"dashboards/json/d.json", "{\n\t\"uid\": \"d\"\n}", "tabs"},
		{"dashboards/json/d.json", `{"uid": "d", "x": "` + strings.Repeat("x", 1<<20) + `"}`, "do not fit into a ConfigMap"},
	} {
		root := good()
		if delete(root, test.file); test.text != "" {
			root[test.file] = &fstest.MapFile{Data: []byte(test.text)}
		}
		_, err := deploy.Manifests(fs.FS(root))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s as %.20q: %v, want %q", test.file, test.text, err, test.want)
		}
	}
}
