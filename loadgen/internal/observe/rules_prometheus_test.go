package observe_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/stormglass/stormglass/deploy/deploytest"
	"github.com/stormglass/stormglass/loadgen/internal/observe"
)

// always has rules whose states do not depend on data.
const always = `
groups:
  - name: g
    interval: 100ms
    rules:
      - {record: 'one', expr: vector(1), labels: {made: here}}
      - {alert: Fires, expr: vector(1), labels: {severity: warning}, annotations: {summary: 'it is {{ $value }}'}}
      - {alert: Waits, expr: vector(1), for: 1h}
      - {alert: Quiet, expr: vector(1) > 1, keep_firing_for: 5m}
`

// TestRulesLikePrometheus: a real Prometheus server with the same rules shows
// them, and the alerts, in the same form and the same states.
func TestRulesLikePrometheus(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "prometheus.yml")
	for path, text := range map[string]string{config: "rule_files: [always.yaml]\n", filepath.Join(dir, "always.yaml"): always} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	ours := start(t, observe.Config{Recorder: newDown(t), Rules: fstest.MapFS{"always.yaml": {Data: []byte(always)}}}).URL()
	theirs := deploytest.StartPrometheus(t, config, t.TempDir())
	for _, path := range []string{
		"rules", "alerts", "rules?type=record", "rules?type=alert&exclude_alerts=true", "rules?rule_name[]=Waits", "rules?rule_group[]=other",
		`rules?match[]={severity="warning"}`,
	} {
		// A server has settled when one alert is firing and one is pending.
		settled := func(base string) any {
			await(t, "fired at "+base, func() bool {
				text, err := json.Marshal(timeless(t, base+"/api/v1/alerts"))
				return err == nil && strings.Contains(string(text), `"state":"firing"`) && strings.Contains(string(text), `"state":"pending"`)
			})
			return timeless(t, base+"/api/v1/"+path)
		}
		if got, want := settled(ours), settled(theirs); !reflect.DeepEqual(got, want) {
			t.Errorf("%s\n ours   %v\n theirs %v", path, got, want)
		}
	}
}

// timeless reads a response without what differs between servers: times, and paths of files.
func timeless(t *testing.T, url string) any {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var body any
	if err := json.NewDecoder(resp.Body).Decode(&body); err != nil {
		t.Fatal(err)
	}
	var strip func(any)
	strip = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, x := range v {
				strip(x)
			}
		case map[string]any:
			for name, x := range v {
				switch name {
				case "evaluationTime", "lastEvaluation", "activeAt", "file":
					v[name] = "some " + reflect.TypeOf(x).String()
				}
				strip(x)
			}
		}
	}
	strip(body)
	return body
}
