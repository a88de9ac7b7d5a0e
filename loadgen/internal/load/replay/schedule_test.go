package replay

import (
	"slices"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/recording"
)

// recordingOf returns a recording of requests, with as many actors as they name.
func recordingOf(t *testing.T, all ...recording.Request) *recording.Recording {
	t.Helper()
	var h recording.Header
	for _, r := range all {
		for len(h.Actors) <= r.Actor {
			h.Actors = append(h.Actors, recording.Actor{Name: string(rune('a' + len(h.Actors)))})
		}
	}
	got, err := recording.Load(h, func(yield func(recording.Request, error) bool) {
		for _, r := range all {
			if r.Version == "" {
				r.Version = "v1"
			}
			if !yield(r, nil) {
				return
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

const ms = recording.Micros(1000)

func get(at recording.Micros, actor int, name string) recording.Request {
	return recording.Request{At: at, Actor: actor, Verb: "get", Resource: "configmaps", Namespace: "x", Name: name, Code: 200}
}

func renew(at recording.Micros) recording.Request {
	return recording.Request{At: at, Verb: "update", Group: "coordination.k8s.io", Resource: "leases", Namespace: "x", Name: "l", Code: 200}
}

func times(all []Arrival, of func(Arrival) bool) []time.Duration {
	var at []time.Duration
	for _, a := range all {
		if of(a) {
			at = append(at, a.At)
		}
	}
	return at
}

func anyArrival(Arrival) bool { return true }

func TestRequestsComeAtTheirTimesDividedByTheSpeed(t *testing.T) {
	tr := recordingOf(t, get(0, 0, "a"), get(3*ms, 1, "b"), get(3*ms, 0, "a"), get(10*ms, 1, "b"))
	for speed, want := range map[float64][]time.Duration{
		1:   {0, 3 * time.Millisecond, 3 * time.Millisecond, 10 * time.Millisecond},
		2:   {0, 1500 * time.Microsecond, 1500 * time.Microsecond, 5 * time.Millisecond},
		0.5: {0, 6 * time.Millisecond, 6 * time.Millisecond, 20 * time.Millisecond},
	} {
		got := Schedule(tr, Options{Speed: speed, Copies: 1}, nil)
		if at := times(got, anyArrival); !slices.Equal(at, want) {
			t.Errorf("speed %g: %v, want %v", speed, at, want)
		}
		if got[1].Entry != 1 || got[2].Entry != 2 {
			t.Errorf("speed %g: requests with the same time change their order", speed)
		}
	}
}

// A lease that is renewed every 2 s is renewed every 2 s at any speed.
func TestRenewalsOfLeasesKeepTheirInterval(t *testing.T) {
	tr := recordingOf(t, get(0, 0, "a"), renew(1000*ms), renew(3000*ms), renew(5000*ms), renew(7000*ms), get(8000*ms-1, 0, "a"))
	isLease := func(a Arrival) bool { return tr.Shapes[tr.Entries[a.Entry].Shape].Resource == "leases" }
	for speed, want := range map[float64][]time.Duration{
		2:   {time.Second, 3 * time.Second},
		0.5: {1 * time.Second, 3 * time.Second, 5 * time.Second, 7 * time.Second, 9 * time.Second, 11 * time.Second, 13 * time.Second, 15 * time.Second},
	} {
		if at := times(Schedule(tr, Options{Speed: speed, Copies: 1}, nil), isLease); !slices.Equal(at, want) {
			t.Errorf("speed %g: renewed at %v, want %v", speed, at, want)
		}
	}
}

func TestCopiesAreShiftedWithinTheRecording(t *testing.T) {
	var all []recording.Request
	for i := range recording.Micros(100) {
		all = append(all, get(i*10*ms, int(i)%4, "o"+string(rune('0'+i%4))))
	}
	tr := recordingOf(t, all...)
	period := time.Duration(tr.Last()+1) * time.Microsecond
	for seed := range int64(5) {
		t.Logf("seed %d", seed)
		o := Options{Name: "again", Seed: seed, Speed: 1, Copies: 3}
		got := Schedule(tr, o, nil)
		if len(got) != 300 {
			t.Fatalf("got %d arrivals for 3 copies of 100 requests", len(got))
		}
		if !slices.IsSortedFunc(got, func(a, b Arrival) int { return int(a.At - b.At) }) {
			t.Error("the arrivals are not in the order of their times")
		}
		shifts := map[[2]int]time.Duration{} // by copy and actor
		for _, a := range got {
			e := tr.Entries[a.Entry]
			shift := (a.At - e.At.D() + period) % period
			key := [2]int{int(a.Copy), int(e.Actor)}
			if known, ok := shifts[key]; ok && known != shift {
				t.Fatalf("copy %d of actor %d is shifted by %s and by %s", a.Copy, e.Actor, known, shift)
			}
			shifts[key] = shift
		}
		apart := map[time.Duration]bool{}
		for key, shift := range shifts {
			if key[0] == 0 && shift != 0 {
				t.Errorf("copy 0 is shifted by %s", shift)
			}
			apart[shift] = true
		}
		if len(apart) != 9 { // none, and one of each of the 8 further copies
			t.Errorf("got %d different shifts for 3 copies of 4 actors", len(apart))
		}
		if again := Schedule(tr, o, nil); !slices.Equal(got, again) {
			t.Error("the same seed results in another schedule")
		}
	}
}

// In every copy, an object that one actor creates exists when another actor reads it.
func TestActorsOfOneObjectAreShiftedTogether(t *testing.T) {
	create := get(5*ms, 0, "o")
	create.Verb, create.Code = "create", 201
	tr := recordingOf(t, get(0, 2, "other"), create, get(6*ms, 1, "o"), get(1000*ms, 2, "other"))
	if groups := together(tr); groups[0] != groups[1] || groups[0] == groups[2] {
		t.Errorf("groups of the three actors: %v", groups)
	}
}

func TestPacerCountsWhatIsDue(t *testing.T) {
	p := &pacer{Schedule(recordingOf(t, get(0, 0, "a"), get(3*ms, 0, "a"), get(3*ms, 0, "a"), get(9*ms, 0, "a")), Options{Speed: 1, Copies: 1}, nil)}
	for at, want := range map[time.Duration]int64{0: 1, 2 * time.Millisecond: 1, 3 * time.Millisecond: 3, time.Hour: 4} {
		if got := p.Due(at); got != want {
			t.Errorf("%d due at %s, want %d", got, at, want)
		}
	}
	if p.At(3) != 9*time.Millisecond || p.At(4) != 1<<63-1 {
		t.Errorf("arrivals 3 and 4 at %s and %s", p.At(3), p.At(4))
	}
}
