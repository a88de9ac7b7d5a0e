package strictyaml_test

import (
	"testing"

	"github.com/stormglass/stormglass/internal/strictyaml"
)

// A switch without a value is refused: it would count as off.
func TestSwitchWithoutAValue(t *testing.T) {
	var into struct {
		Gates map[string]bool `yaml:"gates"`
	}
	doc, err := strictyaml.Parse("a.yaml", []byte("gates:\n  A: true\n  B:\n"))
	if err != nil {
		t.Fatal(err)
	}
	const want = "a.yaml:3: gates.B: it has no value (write true or false)"
	if err := doc.Decode(&into); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
