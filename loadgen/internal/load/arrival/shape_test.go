package arrival

import (
	"math"
	"testing"
	"time"
)

func shaped(t *testing.T, arrival string, rate float64, s Shape) Pacer {
	t.Helper()
	p, err := NewShaped(arrival, rate, s, 7)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

var shapes = map[string]Shape{
	"steady": {},
	"ramp":   {Kind: "ramp", To: 500, Over: 20 * time.Second},
	"fall":   {Kind: "ramp", To: 0, Over: 20 * time.Second},
	"step":   {Kind: "step", To: 400, Steps: 3, Every: 10 * time.Second},
	"burst":  {Kind: "burst", Burst: 50, Every: 5 * time.Second},
	"sine":   {Kind: "sine", Amplitude: 1, Every: 10 * time.Second},
}

// expected returns the number of arrivals of a shape by t seconds, from 100/s. It adds up the rate in small steps,
// independently of the pacer.
func expected(s Shape, t float64) float64 {
	const dt = 1e-3
	sum := 0.0
	for at := dt / 2; at < t; at += dt {
		rate := 100.0
		switch s.Kind {
		case "ramp":
			rate = 100 + (s.To-100)*min(at/s.Over.Seconds(), 1)
		case "step":
			rate = 100 + (s.To-100)*min(math.Floor(at/s.Every.Seconds()), float64(s.Steps))/float64(s.Steps)
		case "sine":
			rate = 100 * (1 + s.Amplitude*math.Sin(2*math.Pi*at/s.Every.Seconds()))
		}
		sum += rate * dt
	}
	if s.Kind == "burst" {
		sum += float64(s.Burst) * math.Floor(t/s.Every.Seconds())
	}
	return sum
}

func TestShapesOfferWhatTheirRateAddsUpTo(t *testing.T) {
	for name, s := range shapes {
		for _, seconds := range []float64{0.5, 4.9, 5.1, 12, 19.5, 27, 44} {
			want := expected(s, seconds)
			elapsed := time.Duration(seconds * float64(time.Second))
			if got := float64(shaped(t, "constant", 100, s).Due(elapsed)); math.Abs(got-want) > 2 {
				t.Errorf("%s: %v arrivals by %v, want %.1f", name, got, elapsed, want)
			}
			// A Poisson count is within five standard deviations of its mean.
			if got := float64(shaped(t, "poisson", 100, s).Due(elapsed)); math.Abs(got-want) > 5*math.Sqrt(want) {
				t.Errorf("poisson %s: %v arrivals by %v, want about %.1f", name, got, elapsed, want)
			}
		}
	}
}

func TestShapesAreInOrderAndDueAgrees(t *testing.T) {
	for name, s := range shapes {
		for _, arrival := range []string{"constant", "poisson"} {
			p := shaped(t, arrival, 100, s)
			last := time.Duration(-1)
			for n := range int64(3000) {
				at := p.At(n)
				if at < last {
					t.Fatalf("%s %s: arrival %d at %v is before the previous one at %v", arrival, name, n, at, last)
				}
				if last = at; at == Never {
					break
				}
				if due := p.Due(at); due < n+1 {
					t.Fatalf("%s %s: %d due at %v, which is arrival %d's time", arrival, name, due, at, n)
				}
			}
			if a, b := p.At(7), shaped(t, arrival, 100, s).At(7); a != b {
				t.Errorf("%s %s: arrival 7 is at %v if computed last, at %v if computed first", arrival, name, a, b)
			}
		}
	}
}

func TestRampToZeroEnds(t *testing.T) {
	p := shaped(t, "constant", 100, shapes["fall"])
	if at := p.At(1000); at != Never {
		t.Errorf("arrival 1000 at %v; a fall from 100/s to 0/s in 20 s has 1000 arrivals, 0 to 999", at)
	}
}

func TestBurstArrivesAtOnce(t *testing.T) {
	p := shaped(t, "constant", 0, Shape{Kind: "burst", Burst: 3, Every: time.Minute})
	for n, want := range []time.Duration{1, 1, 1, 2, 2, 2, 3} {
		if got := p.At(int64(n)); got != want*time.Minute {
			t.Errorf("arrival %d at %v, want %v", n, got, want*time.Minute)
		}
	}
}

func TestReplay(t *testing.T) {
	p := shaped(t, "constant", 0, Shape{Kind: "replay", Times: []float64{0.5, 1, 1, 4}, Speed: 2})
	for n, want := range []time.Duration{250, 500, 500, 2000} {
		if got := p.At(int64(n)); got != want*time.Millisecond {
			t.Errorf("arrival %d at %v, want %v", n, got, want*time.Millisecond)
		}
	}
	if p.At(4) != Never || p.Due(time.Hour) != 4 {
		t.Error("a replay has as many arrivals as times")
	}
}

func TestImpossibleShapesAreRefused(t *testing.T) {
	for _, s := range []Shape{
		{Kind: "wave"}, {Kind: "ramp", To: 5}, {Kind: "ramp", To: -1, Over: 1}, {Kind: "ramp", To: 2e6, Over: 1},
		{Kind: "step", To: 5, Every: 1}, {Kind: "burst", Every: 1}, {Kind: "sine", Amplitude: 1.5, Every: 1},
		{Kind: "replay", Times: []float64{2, 1}, Speed: 1}, {Kind: "replay", Times: []float64{1}},
		{Kind: "replay", Times: []float64{-1}, Speed: 1},
	} {
		if _, err := NewShaped("constant", 10, s, 1); err == nil {
			t.Errorf("New accepts %+v", s)
		}
	}
}
