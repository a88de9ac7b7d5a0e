package commandline

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// A result is the same in each form: YAML has JSON's names and values.
func TestOutputForms(t *testing.T) {
	type result struct {
		Expr  string   `json:"expr"`
		Value *float64 `json:"value,omitempty"`
	}
	value := 0.25
	want := result{`up > 0`, &value}
	for form, read := range map[string]func([]byte, *result) error{
		JSON: func(b []byte, r *result) error { return json.Unmarshal(b, r) },
		YAML: func(b []byte, r *result) error { return yaml.UnmarshalStrict(b, r) },
	} {
		o := AddOutput(&cobra.Command{Use: "list"})
		if err := o.Set(form); err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		if err := o.Write(&text, want, func() error { t.Errorf("%s: the command wrote text", form); return nil }); err != nil {
			t.Fatal(err)
		}
		var got result
		if err := read([]byte(text.String()), &got); err != nil || got.Expr != want.Expr || got.Value == nil || *got.Value != value {
			t.Errorf("%s is read as %+v: %v\n%s", form, got, err, text.String())
		}
		if !strings.Contains(text.String(), "up > 0") {
			t.Errorf("%s escapes readable characters:\n%s", form, text.String())
		}
	}
}

// Results that come one after another are lines of JSON, or documents of YAML.
func TestOutputOfMany(t *testing.T) {
	for form, want := range map[string]string{JSON: "{\"count\":1}\n{\"count\":2}\n", YAML: "---\ncount: 1\n---\ncount: 2\n"} {
		o := AddOutput(&cobra.Command{Use: "events"})
		if err := o.Set(form); err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for n := 1; n <= 2; n++ {
			if err := o.WriteEach(&text, map[string]int{"count": n}, nil); err != nil {
				t.Fatal(err)
			}
		}
		if text.String() != want {
			t.Errorf("%s:\n%s", form, text.String())
		}
	}
}

func TestOutputOfAnUnknownForm(t *testing.T) {
	err := AddOutput(&cobra.Command{Use: "query"}, "csv").Set("xml")
	if err == nil || err.Error() != "is unknown (text, json, yaml or csv)" {
		t.Errorf("error = %v, want \"is unknown (text, json, yaml or csv)\"", err)
	}
}
