package loadgen

import (
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// What never came is no figure to divide by.
func TestALeastValueHasNoRatio(t *testing.T) {
	ten, five := 10.0, 5.0
	figure := func(v *float64, least bool) result.Result {
		return result.Result{Figures: []result.Figure{{Name: "back", Unit: "seconds", Value: v, AtLeast: least}}}
	}
	for _, least := range []bool{false, true} {
		c := result.Comparison{Variants: []result.Variant{{Name: "as it was"}, {Name: "mended"}}}
		fill(&c, map[string]result.Result{"as it was": figure(&ten, least), "mended": figure(&five, false)})
		row := c.Rows[0]
		if row.Values[0].AtLeast != least || (row.Ratio == nil) != least {
			t.Errorf("a least value: %v; the row is %+v", least, row)
		}
	}
}
