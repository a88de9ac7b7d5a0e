package apiclient

import (
	"testing"
	"time"
)

func TestBackoffDoublesUpToItsMost(t *testing.T) {
	b := Backoff{First: 100 * time.Millisecond, Most: time.Second}
	for failures, want := range []time.Duration{100 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond, time.Second, time.Second} {
		if least, most := b.Wait(failures, 0), b.Wait(failures, 1); least != want || most != 2*want {
			t.Errorf("wait after %d failures is %v to %v, want %v to twice that", failures, least, most, want)
		}
	}
}
