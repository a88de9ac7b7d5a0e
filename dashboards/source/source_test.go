package source

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"

	"github.com/stormglass/stormglass/alerts/render"
)

var update = flag.Bool("update", false, "write dashboards/json and docs/reference/dashboards.md")

// TestFiles compares the checked-in files with the generated dashboards. It fails if dashboards/json contains other
// files.
func TestFiles(t *testing.T) {
	boards, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	for uid, text := range boards {
		equal(t, filepath.Join("../json", uid+".json"), text)
	}
	found, err := filepath.Glob("../json/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range found {
		if uid := filepath.Base(file[:len(file)-len(filepath.Ext(file))]); boards[uid] == nil {
			t.Errorf("no dashboard writes %s", file)
		}
	}
	if all := allBoards(t); len(boards) != len(all) {
		t.Errorf("%d dashboards, but the order lists %d", len(boards), len(all))
	}
}

func equal(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from its source: run go test ./dashboards/source -update", file)
	}
}

// TestStrict checks that the SDK's strict decoder accepts each dashboard. It first removes additional fields of
// annotations, which only the Prometheus data source reads.
func TestStrict(t *testing.T) {
	runtime := cog.NewRuntime()
	runtime.RegisterPanelcfgVariant(timeseries.VariantConfig())
	runtime.RegisterPanelcfgVariant(stat.VariantConfig())
	runtime.RegisterPanelcfgVariant(table.VariantConfig())
	runtime.RegisterPanelcfgVariant(heatmap.VariantConfig())
	runtime.RegisterPanelcfgVariant(statetimeline.VariantConfig())
	runtime.RegisterDataqueryVariant(prometheus.VariantConfig())
	boards, err := Files()
	if err != nil {
		t.Fatal(err)
	}
	// Include the dashboards that `loadgen alerts render` writes, with fewer panels and other names.
	for _, preset := range render.Presets() {
		jobs, err := render.Preset(preset)
		if err != nil {
			t.Fatal(err)
		}
		jobs[render.Generator] = ""
		bundle, err := render.Render(render.Options{Jobs: jobs, ClusterLabel: "k8s_cluster", Selector: `tier="prod"`})
		if err != nil {
			t.Fatal(err)
		}
		for file, text := range bundle.Files {
			if strings.HasPrefix(file, "dashboards/") {
				boards[preset+": "+file] = text
			}
		}
	}
	for name, text := range boards {
		var doc map[string]any
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		for _, a := range doc["annotations"].(map[string]any)["list"].([]any) {
			for _, m := range marks() {
				for field := range m.extra {
					delete(a.(map[string]any), field)
				}
			}
		}
		text, err := json.Marshal(doc)
		if err != nil {
			t.Fatal(err)
		}
		var d dashboard.Dashboard
		if err := d.UnmarshalJSONStrict(text); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if err := d.Validate(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	// Check that the decoder refuses unknown fields. Otherwise the test would prove nothing.
	var d dashboard.Dashboard
	if err := d.UnmarshalJSONStrict([]byte(`{"schemaVersion": 42, "templating": {}, "annotations": {}, "panles": []}`)); err == nil {
		t.Error("the decoder accepts an unknown field")
	}
}
