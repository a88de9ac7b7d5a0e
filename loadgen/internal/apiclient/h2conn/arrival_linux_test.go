package h2conn

import (
	"io"
	"runtime"
	"testing"
	"time"
)

// A socket reports how long bytes that arrived before the read had waited.
func TestSocketKnowsHowLongBytesWaited(t *testing.T) {
	ours, theirs := sockets(t, nil)
	waited := stampArrivals(ours)
	if waited == nil {
		t.Fatal("stampArrivals returned nil")
	}
	buf := make([]byte, 10)
	for *waited == 0 { // the kernel records arrival times only some time after the call
		if _, err := theirs.Write(buf); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(ours, buf); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]time.Duration{"at once": 0, "late": 50 * time.Millisecond} {
		if _, err := theirs.Write(buf); err != nil {
			t.Fatal(err)
		}
		// Wait until the bytes have arrived, and then for the given duration.
		for backlog(ours) < int64(len(buf)) {
			runtime.Gosched()
		}
		there := time.Now()
		for time.Since(there) < c {
			runtime.Gosched()
		}
		before := time.Since(there)
		if n, err := io.ReadFull(ours, buf); n != len(buf) || err != nil {
			t.Fatal(n, err)
		}
		if *waited < before || *waited > before+time.Since(there)+time.Minute {
			t.Errorf("%s: waited = %v, want at least %v", name, *waited, before)
		}
	}
	theirs.Close()
	if _, err := ours.Read(buf); err != io.EOF {
		t.Errorf("read at the end of the stream: %v", err)
	}
}

func TestSinceStampOfOddMessages(t *testing.T) {
	for name, control := range map[string][]byte{
		"none": nil, "short": make([]byte, 3), "of no length": make([]byte, 64), "longer than it is": {255, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 35, 0, 0, 0, 1},
	} {
		if got := sinceStamp(control, time.Now()); got != 0 {
			t.Errorf("%s: %v", name, got)
		}
	}
}
