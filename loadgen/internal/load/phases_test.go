package load

import (
	"testing"
	"time"
)

// If Begin is called after the start time of a phase, the phase begins at the call. Arrivals in between were counted in
// the previous phase, and a rate that includes this time would be too low.
func TestAPhaseBeginsWhenItsArrivalsCount(t *testing.T) {
	start := time.Now().Add(-10 * time.Second)
	p := NewPhases(func() *int { return new(int) })
	p.Begin("one", start)
	*p.At(time.Now())++
	stamped := time.Now().Add(-time.Second)
	heard := time.Now()
	p.Begin("two", stamped)
	if p.At(heard.Add(-time.Second/2)) == p.Now() {
		t.Error("an arrival before the phase was known belongs to it")
	}
	p.Each(start, heard.Add(time.Second), func(name string, length time.Duration, _ *int) {
		if name == "two" && length > time.Second {
			t.Errorf("phase two lasted %s, longer than the second in which its arrivals counted", length)
		}
	})
}
