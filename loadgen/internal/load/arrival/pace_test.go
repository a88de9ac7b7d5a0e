package arrival

import (
	"math"
	"strings"
	"testing"
	"time"
)

func mustNew(t *testing.T, arrival string, rate float64, seed int64) Pacer {
	t.Helper()
	p, err := New(arrival, rate, seed)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestConstantArrivals(t *testing.T) {
	for _, c := range []struct {
		rate float64
		n    int64
		want time.Duration
	}{
		{50, 0, 0}, {50, 1, 20 * time.Millisecond}, {50, 100, 2 * time.Second},
		{1.0 / 3600, 2, 2 * time.Hour},
		{3, 3_000_000, 1_000_000 * time.Second}, // no drift over days
		{0, 0, Never},
		{1e-30, 1, Never},
	} {
		if got := mustNew(t, "constant", c.rate, 1).At(c.n); got != c.want {
			t.Errorf("rate %v: arrival %d at %v, want %v", c.rate, c.n, got, c.want)
		}
	}
}

// Due and At agree, forwards and backwards, also for rates whose gaps are not whole nanoseconds.
func TestDueAgreesWithAt(t *testing.T) {
	for _, arrival := range []string{"constant", "poisson"} {
		for _, rate := range []float64{0.7, 3, 49.9, 1000, 333_333} {
			p := mustNew(t, arrival, rate, 7)
			for _, n := range []int64{0, 1, 2, 10, 999, 5000, 12, 3} {
				at := p.At(n)
				if got := p.Due(at); got < n+1 || p.At(got-1) > at || p.At(got) <= at {
					t.Errorf("%s %v/s: %d due at the time of arrival %d", arrival, rate, got, n)
				}
				if got := p.Due(at - 1); got > n || p.At(got) <= at-1 {
					t.Errorf("%s %v/s: %d due a nanosecond before arrival %d", arrival, rate, got, n)
				}
			}
			if got := p.Due(-1); got != 0 {
				t.Errorf("%s %v/s: %d due before the start", arrival, rate, got)
			}
		}
	}
}

func TestNoRateNoArrivals(t *testing.T) {
	for _, arrival := range []string{"constant", "poisson"} {
		p := mustNew(t, arrival, 0, 1)
		if at, due := p.At(0), p.Due(Never-1); at != Never || due != 0 {
			t.Errorf("%s 0/s: first at %v, %d due; want never and 0", arrival, at, due)
		}
	}
}

// The gaps of a Poisson process have mean and standard deviation 1/rate.
func TestPoissonGaps(t *testing.T) {
	const rate, n = 200.0, 100_000
	p := mustNew(t, "poisson", rate, 42)
	var last time.Duration
	var sum, squares float64
	for i := range int64(n) {
		at := p.At(i)
		if at < last {
			t.Fatalf("arrival %d at %v is before the previous one at %v", i, at, last)
		}
		gap := (at - last).Seconds()
		sum, squares, last = sum+gap, squares+gap*gap, at
	}
	mean := sum / n
	deviation := math.Sqrt(squares/n - mean*mean)
	if math.Abs(mean*rate-1) > 0.02 || math.Abs(deviation*rate-1) > 0.02 {
		t.Errorf("gaps: mean %v s, deviation %v s; want both %v s", mean, deviation, 1/rate)
	}
}

func TestSameSeedSameArrivals(t *testing.T) {
	a, b, other := mustNew(t, "poisson", 10, 1), mustNew(t, "poisson", 10, 1), mustNew(t, "poisson", 10, 2)
	b.At(500) // earlier calls do not matter
	differ := false
	for n := range int64(100) {
		if a.At(n) != b.At(n) {
			t.Fatalf("arrival %d differs with the same seed: %v and %v", n, a.At(n), b.At(n))
		}
		differ = differ || a.At(n) != other.At(n)
	}
	if !differ {
		t.Error("another seed results in the same arrivals")
	}
}

func TestImpossibleIsRefused(t *testing.T) {
	for _, c := range []struct {
		arrival string
		rate    float64
		hint    string
	}{
		{"constant", -1, "from 0/s"}, {"constant", math.NaN(), "from 0/s"},
		{"poisson", math.Inf(1), "1000000/s"}, {"constant", 2e6, "1000000/s"},
		{"ramp", 1, "constant or poisson"},
	} {
		if _, err := New(c.arrival, c.rate, 1); err == nil || !strings.Contains(err.Error(), c.hint) {
			t.Errorf("New(%q, %v): error %v, want one with %q", c.arrival, c.rate, err, c.hint)
		}
	}
}
