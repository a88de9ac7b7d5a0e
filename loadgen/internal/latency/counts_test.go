package latency

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"
)

// Counts that were encoded as JSON add up to the histogram of all values.
func TestMergedCountsAreThoseOfOneHistogram(t *testing.T) {
	const seed = 7
	t.Logf("seed %d", seed)
	draw := rand.New(rand.NewPCG(seed, 1))
	whole := New(2 * time.Minute)
	var parts []Counts
	for i := range 4 {
		h := New(2 * time.Minute)
		for range i * 1000 { // the first one is empty
			d := time.Duration(draw.ExpFloat64() * float64(20*time.Millisecond))
			if draw.IntN(10) == 0 {
				d = 0
			}
			if draw.IntN(500) == 0 {
				d = 3 * time.Minute // out of range
			}
			h.Record(d)
			whole.Record(d)
		}
		text, err := json.Marshal(h.Counts())
		if err != nil {
			t.Fatal(err)
		}
		var c Counts
		if err := json.Unmarshal(text, &c); err != nil {
			t.Fatal(err)
		}
		parts = append(parts, c)
	}
	merged, err := Merged(parts...)
	if err != nil {
		t.Fatal(err)
	}
	got, want := merged.Latency(), whole.Latency()
	if ratio := got.Mean / want.Mean; ratio < 1-1e-9 || ratio > 1+1e-9 {
		t.Errorf("mean %v, want %v", got.Mean, want.Mean)
	}
	got.Mean = want.Mean // depends on the order of additions in its last digit
	if !reflect.DeepEqual(got, want) {
		t.Errorf("merged %+v, want %+v", got, want)
	}
	if empty, err := Merged(); err != nil || empty.Latency().Count != 0 {
		t.Errorf("nothing merged: %+v, %v", empty.Latency(), err)
	}
}

// Counts that no histogram of the range can have are rejected.
func TestImpossibleCountsAreRefused(t *testing.T) {
	h := New(time.Second)
	h.Record(time.Millisecond)
	good := h.Counts()
	for name, bad := range map[string]Counts{
		"another range":   {Highest: time.Minute, Zeros: 1},
		"past the range":  {Highest: time.Second, Buckets: []int64{1 << 40, 1}},
		"negative":        {Highest: time.Second, Buckets: []int64{0, -1}},
		"half a pair":     {Highest: time.Second, Buckets: []int64{0}},
		"many past it":    {Highest: time.Second, Buckets: []int64{5000, 1, 5000, 1, 5000, 1, 5000, 1, 5000, 1, 5000, 1, 5000, 1}},
		"negative zeros":  {Highest: time.Second, Zeros: -1},
		"negative clamps": {Highest: time.Second, Zeros: 1, Clamped: -1},
	} {
		if _, err := Merged(good, bad); err == nil {
			t.Errorf("%s: merged", name)
		}
	}
}
