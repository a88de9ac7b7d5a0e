package samples

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

func open(t *testing.T, event func(result.Event)) (dir string, r *Recorder) {
	t.Helper()
	dir = t.TempDir()
	r, err := Open(dir, event)
	if err != nil {
		t.Fatal(err)
	}
	return dir, r
}

func read(t *testing.T, dir string) []Slot {
	t.Helper()
	slots, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return slots
}

func TestSlotsHoldTheirResults(t *testing.T) {
	dir, r := open(t, nil)
	start := r.from
	reads, watches := r.Requests("reads"), r.Streams("watches")
	step := func(n int) {
		t.Helper()
		if err := r.flush(start.Add(time.Duration(n) * Width)); err != nil {
			t.Fatal(err)
		}
	}
	reads.Succeeded(20*time.Millisecond, 0)
	reads.Succeeded(5*time.Millisecond, 0)
	step(1)
	step(2) // nothing happened: no line
	reads.Failed("503", time.Second, 0)
	reads.Failed("503", time.Millisecond, 0)
	reads.Failed("timeout", 2*time.Second, 0)
	reads.Unsent()
	watches.Broke()
	watches.Relisted()
	watches.Delivered(7)
	step(5) // late
	if err := r.f.Close(); err != nil {
		t.Fatal(err)
	}

	slots := read(t, dir)
	if len(slots) != 2 {
		t.Fatalf("%d slots, want 2: %v", len(slots), slots)
	}
	if s := slots[0].Requests["reads"]; s.Succeeded != 2 || s.Slowest != 0.02 || s.Failures() != 0 || len(slots[0].Streams) != 0 {
		t.Errorf("the first slot is %+v", slots[0])
	}
	late := slots[1]
	if got := late.Until().Sub(late.From()); got != 300*time.Millisecond {
		t.Errorf("a slot that ended late is %v long, want 300ms", got)
	}
	if s := late.Requests["reads"]; s.Failed["503"] != 2 || s.Failed["timeout"] != 1 || s.Failures() != 3 || s.Unsent != 1 || s.Slowest != 2 || s.Succeeded != 0 {
		t.Errorf("requests of the late slot are %+v", s)
	}
	if s := late.Streams["watches"]; s != (StreamSlot{Breaks: 1, Relists: 1, Delivered: 7}) {
		t.Errorf("streams of the late slot are %+v", s)
	}
}

// Concurrent counting neither loses nor duplicates requests between slots.
func TestNoRequestIsLostBetweenSlots(t *testing.T) {
	dir, r := open(t, nil)
	const loads, each = 4, 5000
	var counting sync.WaitGroup
	for range loads {
		counting.Go(func() {
			c := r.Requests("reads")
			for i := range each {
				if i%10 == 0 {
					c.Failed("500", time.Millisecond, 0)
				} else {
					c.Succeeded(time.Millisecond, 0)
				}
			}
		})
	}
	done := make(chan struct{})
	go func() { counting.Wait(); close(done) }()
	for at, over := r.from, false; !over; {
		select {
		case <-done:
			over = true
		default:
		}
		at = at.Add(Width)
		if err := r.flush(at); err != nil {
			t.Fatal(err)
		}
	}
	var ok, failed int64
	for _, s := range read(t, dir) {
		ok += s.Requests["reads"].Succeeded
		failed += s.Requests["reads"].Failures()
	}
	if ok != loads*each*9/10 || failed != loads*each/10 {
		t.Errorf("%d succeeded and %d failed, want %d and %d", ok, failed, loads*each*9/10, loads*each/10)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

func TestRelistStormIsOneEvent(t *testing.T) {
	var events []result.Event
	_, r := open(t, func(e result.Event) { events = append(events, e) })
	at := r.from
	watches := r.Streams("flood")
	for _, pause := range []time.Duration{Width, Width, 4 * time.Second, 6 * time.Second} {
		at = at.Add(pause)
		watches.Relisted()
		if err := r.flush(at); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if len(events) != 2 || events[0].Kind != "relist" || events[0].Name != "flood" || !events[1].Time.Equal(at) {
		t.Errorf("events are %v, want the first of the storm and the one after the pause", events)
	}
}

// A stalled disk under the timeline does not make slots longer.
func TestStalledTimelineDoesNotDelaySamples(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stalled := make(chan struct{})
		told := 0
		dir, r := open(t, func(result.Event) { <-stalled; told++ })
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() { ran <- r.Run(ctx) }()
		r.Streams("flood").Relisted()
		time.Sleep(Width / 2) // with the test's clock
		for range 10 {
			r.Requests("reads").Succeeded(time.Millisecond, 0)
			time.Sleep(Width)
		}
		close(stalled)
		synctest.Wait()
		stop()
		if err := errors.Join(<-ran, r.Close()); err != nil {
			t.Fatal(err)
		}
		slots := read(t, dir)
		for _, s := range slots {
			if s.Millis != Width.Milliseconds() {
				t.Errorf("a slot is %d ms long while the timeline stalls", s.Millis)
			}
		}
		if len(slots) != 10 || told != 1 {
			t.Errorf("%d slots and %d events, want 10 and 1", len(slots), told)
		}
	})
}

func TestWithoutARecorderNothingIsCounted(t *testing.T) {
	var r *Recorder
	r.Requests("reads").Succeeded(time.Second, 0)
	r.Requests("reads").Failed("500", time.Second, 0)
	r.Requests("reads").Unsent()
	r.Streams("watches").Broke()
	r.Streams("watches").Relisted()
	r.Streams("watches").Delivered(1)
}

func TestReadTruncatedSamples(t *testing.T) {
	dir := t.TempDir()
	if slots := read(t, dir); len(slots) != 0 {
		t.Errorf("a run without a pulse has %d slots", len(slots))
	}
	path := filepath.Join(dir, result.PulseFile)
	if err := os.WriteFile(path, []byte(`{"t":1000,"ms":100,"requests":{"reads":{"ok":1}}}`+"\n"+`{"t":1100,"ms":1`), 0o600); err != nil {
		t.Fatal(err)
	}
	if slots := read(t, dir); len(slots) != 1 || slots[0].Requests["reads"].Succeeded != 1 {
		t.Errorf("slots are %v, want the one whole line", slots)
	}
	if err := os.WriteFile(path, []byte("{}\nnot a slot\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil {
		t.Error("Read accepts a broken line")
	}
}

func BenchmarkSucceeded(b *testing.B) {
	r, err := Open(b.TempDir(), nil)
	if err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	c := r.Requests("reads")
	b.ReportAllocs()
	for b.Loop() {
		c.Succeeded(time.Millisecond, 0)
	}
}
