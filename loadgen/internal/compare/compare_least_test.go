package compare

import (
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// A value that is only a lower bound is not used as a divisor.
func TestLowerBoundHasNoRatio(t *testing.T) {
	ten, five := 10.0, 5.0
	figure := func(v *float64, least bool) result.Result {
		return result.Result{Figures: []result.Figure{{Name: "back", Unit: "seconds", Value: v, AtLeast: least}}}
	}
	for _, least := range []bool{false, true} {
		c := result.Comparison{Variants: []result.Variant{{Name: "before"}, {Name: "after"}}}
		fill(&c, map[string]result.Result{"before": figure(&ten, least), "after": figure(&five, false)})
		row := c.Rows[0]
		if row.Values[0].AtLeast != least || (row.Values[1].Ratio == nil) != least {
			t.Errorf("a least value: %v; the row is %+v", least, row)
		}
	}
}

// Each of several variants is compared with the first.
func TestEachVariantIsComparedWithTheFirst(t *testing.T) {
	v := func(x float64) result.Value { return result.Value{Value: &x} }
	least := v(9)
	least.AtLeast = true
	row := []result.Value{v(4), v(2), {}, least, v(6), v(0)}
	ratios(row)
	for i, want := range []float64{-1, 0.5, -1, -1, 1.5, 0} {
		if got := row[i].Ratio; (got == nil) != (want < 0) || got != nil && *got != want {
			t.Errorf("the ratio of variant %d is %v, want %v", i, got, want)
		}
	}
	none := []result.Value{v(0), v(2)}
	if ratios(none); none[1].Ratio != nil {
		t.Errorf("%v times nothing", *none[1].Ratio)
	}
}
