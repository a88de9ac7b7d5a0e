package result

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Labels survive writing and reading run.json. A run.json with labels that no run writes is damaged.
func TestLabelsOfRunFile(t *testing.T) {
	many := map[string]string{}
	for i := range maxLabels + 1 {
		many[fmt.Sprint(i)] = "x"
	}
	for name, c := range map[string]struct {
		labels map[string]string
		why    string
	}{
		"labels":      {map[string]string{"team": "core", "a.B-c_9": "größer = 5, ok?"}, ""},
		"too many":    {many, "at most 32 labels"},
		"long name":   {map[string]string{strings.Repeat("a", 64): "x"}, "not the name of a label"},
		"bad name":    {map[string]string{"a/b": "x"}, "not the name of a label"},
		"long value":  {map[string]string{"a": strings.Repeat("ü", 64)}, "more than 63 characters"},
		"no value":    {map[string]string{"a": ""}, "has no value"},
		"control":     {map[string]string{"a": "x\x1b[2J"}, "cannot be printed"},
		"directional": {map[string]string{"a": "x\u202e"}, "cannot be printed"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			data, err := Run{ID: "ab12", Started: time.Unix(1, 0), Labels: c.labels}.Encode()
			if err == nil {
				err = os.WriteFile(filepath.Join(dir, RunFile), data, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			run, err := ReadRun(dir)
			switch {
			case c.why == "" && (err != nil || fmt.Sprint(run.Labels) != fmt.Sprint(c.labels)):
				t.Errorf("labels %v, error %v", run.Labels, err)
			case c.why != "" && (err == nil || !strings.Contains(err.Error(), c.why)):
				t.Errorf("error %v, want %q", err, c.why)
			}
		})
	}
}
