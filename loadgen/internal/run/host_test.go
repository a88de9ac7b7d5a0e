package run

import (
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// OtherGenerator reports measurements of another machine or another loadgen version: they cannot be continued here.
func TestOtherGenerator(t *testing.T) {
	more := hostFacts()
	more.CPUs++
	for name, c := range map[string]struct {
		host    result.Host
		version string
		want    string // "" means no difference
	}{
		"this one":        {hostFacts(), Version(), ""},
		"nothing known":   {result.Host{}, "", ""},
		"more processors": {more, Version(), "on another machine with "},
		"another model":   {result.Host{CPUs: hostFacts().CPUs, CPUModel: "Z80"}, "", "processors (Z80)"},
		"another loadgen": {hostFacts(), "v0.0.0-other", "with loadgen v0.0.0-other, but this is loadgen "},
	} {
		if got := OtherGenerator(c.host, c.version); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
