package samples

import (
	"testing"
	"time"
)

func TestWindowCountsWhatTheServerFailed(t *testing.T) {
	_, r := open(t, nil)
	var w Window
	r.Follow(w.Add)
	reads, writes := r.Requests("reads"), r.Requests("writes")
	at := r.from
	step := func(d time.Duration) {
		t.Helper()
		at = at.Add(d)
		if err := r.flush(at); err != nil {
			t.Fatal(err)
		}
	}
	for range 90 {
		reads.Succeeded(10*time.Millisecond, 0)
	}
	writes.Failed("409", 20*time.Millisecond, 0) // a conflict within the load
	writes.Failed("429", 30*time.Millisecond, 0)
	for _, o := range []string{"500", "503", "timeout", "reset", "refused", "truncated", "goaway", "protocol"} {
		writes.Failed(o, 2*time.Second, time.Second)
	}
	writes.Failed("canceled", time.Minute, 0) // because the run ended
	step(Width)
	if got, want := w.Recent(), (Counts{Ended: 100, Throttled: 1, Errors: 8}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if n := w.Over(900 * time.Millisecond); n != 8 { // the generator delayed them by one of two seconds
		t.Errorf("%d over 900 ms", n)
	}
	if n := w.Over(1100 * time.Millisecond); n != 0 {
		t.Errorf("%d over 1.1 s", n)
	}
	if d := w.Longest(20); d < 10*time.Millisecond || d > 10700*time.Microsecond {
		t.Errorf("80%% of the requests took at most %s", d)
	}
	for range 49 {
		step(Width)
	}
	if w.Recent().Ended != 100 {
		t.Errorf("after %s: %+v", at.Sub(r.from), w.Recent())
	}
	step(Width)
	if got := w.Recent(); got != (Counts{}) || w.Over(0) != 0 || w.Longest(0) != 0 {
		t.Errorf("after more than %s: %+v", Span, got)
	}
	if w.Total().Ended != 100 {
		t.Errorf("in total %+v", w.Total())
	}
	if err := r.f.Close(); err != nil {
		t.Fatal(err)
	}
}

// A bucket's upper edge exceeds its values by at most 6.25% and is never below them.
func TestBucketsAreNarrow(t *testing.T) {
	for d := time.Microsecond; d < time.Hour; d += d/7 + 1 {
		i := bucketOf(d)
		if e := edge(i); e < d || d >= 1<<shortest && float64(e) > 1.0625*float64(d) {
			t.Errorf("%s is in bucket %d, up to %s", d, i, e)
		}
	}
	for d, want := range map[time.Duration]int{-time.Second: 0, 0: 0, 1023: 0, 1024: 1, 200 * time.Hour: buckets - 1} {
		if got := bucketOf(d); got != want {
			t.Errorf("%s is in bucket %d, want %d", d, got, want)
		}
	}
}
