package chart

import (
	"math"
	"testing"
)

// Each bar is at its place on the axis, with its text if it fits.
func TestWaterfallBarsHaveTheirWordsWhereThereIsRoom(t *testing.T) {
	at := func(v float64) *float64 { return &v }
	w := NewWaterfall("x", "title", "here", "", []Hop{
		{"write", at(.02), at(.02), 1, false}, {"pods", at(.12), at(26.1), 500, false}, {"ready", at(29.9), at(29.95), 9, false}, {"served", nil, nil, 0, true},
	})
	for i, want := range []struct {
		text string
		side side
		from float64 // s
		to   float64
	}{
		{"20 ms", behind, .02, .02}, {"500, 120 ms to 26.1 s", inside, .12, 26.1}, {"9, 29.9 s to 29.9 s", before, 29.9, 29.95}, {"no object", behind, 0, 0},
	} {
		b := w.Bars[i]
		if b.Text != want.text || b.side != want.side || math.Abs(b.from-want.from/30*1000) > 1e-6 || math.Abs(b.to-want.to/30*1000) > 1e-6 {
			t.Errorf("%+v, want %+v", b, want)
		}
	}
	if late := w.Bars[2]; late.Right == "" || late.Left != "" {
		t.Errorf("a late hop's words: %+v", late)
	}
}
