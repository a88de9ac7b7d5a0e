package recording

import (
	"cmp"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
)

// file writes a recording and returns its path.
func file(t *testing.T, actors []Actor, all ...Request) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "recording")
	h := Header{Start: time.Unix(1e9, 0), Length: 3600e6, Requests: int64(len(all)), Actors: actors, Source: "a test"}
	for i := range all {
		all[i].Verb, all[i].Version, all[i].Resource = "get", "v1", cmp.Or(all[i].Resource, "pods")
	}
	write(t, path, h, all)
	return path
}

// every returns requests of an actor from the time shift on. perSecond has the number of requests for each second.
func every(actor int, shift Micros, perSecond ...int) (all []Request) {
	for second, n := range perSecond {
		for i := range n {
			all = append(all, Request{Actor: actor, At: shift + Micros(second)*1e6 + Micros(i)})
		}
	}
	return all
}

func TestCompareFindsARecordingThatIsTheRecording(t *testing.T) {
	recorded := []Actor{{Name: "loadgen", As: "blue"}}
	replayed := []Actor{{Name: "loadgen"}, {Name: "loadgen", As: "stormglass:tenant:tuesday-0:blue"}}
	a := file(t, recorded, every(0, 0, 10, 0, 10, 0, 1)...)
	b := file(t, replayed, append(every(0, 0, 30), every(1, 5e6+777, 10, 0, 10, 0, 1)...)...)
	c, err := Compare(a, b, CompareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if c.Requests != 21 || c.Replayed != 21 || c.Setup != 30 || c.RateError != 0 || c.DispersionError != 0 || c.Dispersion < 5 {
		t.Errorf("%+v", c)
	}
}

func TestCompareFindsWhatDiffers(t *testing.T) {
	recorded := []Actor{{Name: "blue"}, {Name: "green"}}
	replayed := []Actor{{Name: "x", As: "stormglass:tenant:tuesday-0:blue"}, {Name: "x", As: "stormglass:tenant:tuesday-0:red"}}
	a := file(t, recorded, append(every(0, 0, 50, 50), every(1, 2e6, 10, 1)...)...)
	b := file(t, replayed, append(every(0, 0, 50, 45), every(1, 2e6, 10)...)...)
	c, err := Compare(a, b, CompareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{"blue": 0.05, "green": 1, "red": 1}
	for _, g := range c.Groups {
		if g.Error != want[g.Actor] {
			t.Errorf("%s differs by %g, want %g", g.Actor, g.Error, want[g.Actor])
		}
	}
	if len(c.Groups) != 3 || c.RateError != 1 {
		t.Errorf("%+v", c)
	}
}

func TestCompareTakesSpeedAndCopiesIntoAccount(t *testing.T) {
	a := file(t, []Actor{{Name: "blue"}}, every(0, 0, 4, 0, 8, 0, 2, 2, 1)...)
	fast := file(t, []Actor{{Name: "x", As: "stormglass:tenant:tuesday-0:blue"}}, every(0, 0, 4, 8, 4, 1)...)
	if c, err := Compare(a, fast, CompareOptions{Speed: 2}); err != nil || c.RateError != 0 || c.DispersionError != 0 {
		t.Errorf("twice as fast: %+v, %v", c, err)
	}
	replayed := []Actor{{Name: "x", As: "stormglass:tenant:tuesday-0:blue"}, {Name: "x", As: "stormglass:tenant:tuesday-1:blue"}}
	double := file(t, replayed, append(every(0, 0, 4, 0, 8, 0, 2, 2, 1), every(1, 7e6, 4, 0, 8, 0, 2, 2, 1)...)...)
	if c, err := Compare(a, double, CompareOptions{Copies: 2}); err != nil || c.RateError != 0 || c.Replayed != 34 {
		t.Errorf("two copies: %+v, %v", c, err)
	}
}

// Compare refuses a speed so low that the replay would be longer than a recording can be. It does so before it
// allocates a counter for each second.
func TestCompareRefusesEndlessReplays(t *testing.T) {
	a := file(t, []Actor{{Name: "blue"}}, every(0, 0, 1, 1)...)
	for _, speed := range []float64{1e-3, 1e-300, math.NaN()} {
		if _, err := Compare(a, a, CompareOptions{Speed: speed}); exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "longer than 31 days") {
			t.Errorf("speed %g: %v", speed, err)
		}
	}
}

// Anyone may have edited a recording, so WriteText removes escape sequences from its text.
func TestComparisonIsPrintedClean(t *testing.T) {
	var text strings.Builder
	c := Comparison{Groups: []GroupComparison{{Verb: "get", Resource: "pods/\u202ex", Actor: "\x1b]0;x\ablue"}}}
	if err := c.WriteText(&text); err != nil || strings.ContainsAny(text.String(), "\x1b\a\u202e") || !strings.Contains(text.String(), "blue") {
		t.Errorf("%q, %v", text.String(), err)
	}
}

// Lease renewals keep their interval: a replay at twice the speed has half as many.
func TestCompareKeepsTheIntervalOfRenewals(t *testing.T) {
	renewals := func(actor int, gap Micros, n int) (all []Request) {
		for i := range n {
			all = append(all, Request{Actor: actor, At: Micros(i) * gap, Group: "coordination.k8s.io", Resource: "leases"})
		}
		return all
	}
	a := file(t, []Actor{{Name: "blue"}}, append(renewals(0, 2e6, 5), Request{At: 9e6})...)
	fast := file(t, []Actor{{Name: "x", As: "stormglass:tenant:tuesday-0:blue"}}, append(renewals(0, 2e6, 3), Request{At: 4.5e6})...)
	if c, err := Compare(a, fast, CompareOptions{Speed: 2}); err != nil || c.RateError != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}
