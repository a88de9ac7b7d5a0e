package diagnosis

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/result"
)

// TestRoots: firings that explain each other in a circle do not vanish: the first one is the cause.
func TestRoots(t *testing.T) {
	for name, c := range map[string]struct {
		explained [][]int
		want      []int
	}{
		"nothing":                 {nil, nil},
		"two causes":              {[][]int{nil, nil}, []int{0, 1}},
		"a chain":                 {[][]int{nil, {2}, {0}}, []int{1}},
		"a circle":                {[][]int{{1}, {2}, {0}}, []int{0}},
		"a circle and its cause":  {[][]int{{1}, {0}, {1}}, []int{2}},
		"a circle, another cause": {[][]int{nil, {2}, {1}}, []int{0, 1}},
	} {
		if got := roots(c.explained); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestLive: while a cause lasts the comparison period stays before it, for at most a day, and only the last hour is diagnosed.
func TestLive(t *testing.T) {
	start := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return start.Add(time.Duration(minutes) * time.Minute) }
	live := Live{Since: start}
	made := func(minute int, causes ...result.Cause) Options {
		o := live.Options(at(minute))
		live.Saw(result.Diagnosis{Calm: o.Calm, Under: o.Under, Causes: causes})
		return o
	}
	lasts := result.Cause{Began: at(9)}
	before := made(10, lasts).Calm
	if want := (result.Span{From: start, To: at(8)}); before != want {
		t.Errorf("at first calm is %v, want %v", before, want)
	}
	if o := made(50, lasts); o.Calm != before || o.Under.From != at(8) || o.Under.To != at(50) {
		t.Errorf("while the cause lasts: %+v", o)
	}
	if o := made(100, lasts); o.Calm != before || o.Under.From != at(40) {
		t.Errorf("after an hour: %+v", o)
	}
	const day = 24 * 60
	made(day+9, lasts)
	if o := made(day+10, lasts); o.Calm == before {
		t.Error("after a day, the diagnosis still compares a lasting symptom with the time before it")
	}
	lasts.Ended = at(day + 11)
	made(day+12, lasts)
	if o := made(day + 13); o.Calm.To != at(day+11) {
		t.Errorf("after its end: %+v", o)
	}
}

// A diagnosed time of fewer than eight scrapes would hide signals that must deviate in three scrapes.
func TestLiveOfRareScrapes(t *testing.T) {
	live := Live{Step: 2 * time.Minute}
	if o := live.Options(time.Now()); o.Under.To.Sub(o.Under.From) != 16*time.Minute || o.Calm.To != o.Under.From {
		t.Errorf("%+v", o)
	}
}

// scrapes answers with a target that was scraped this many times.
type scrapes int

func (n scrapes) Range(_ context.Context, _ string, _, end time.Time, _ time.Duration) ([]archive.Series, error) {
	if n == 0 {
		return nil, nil
	}
	one := archive.Series{}
	for i := range n {
		at := end.Add(time.Duration(i-n) * 5 * time.Second)
		one.Points = append(one.Points, archive.Point{T: at, V: float64(at.Unix())})
	}
	return []archive.Series{one}, nil
}

// Too few scrapes for an interval give another error than no scrapes.
func TestIntervalOfFewScrapes(t *testing.T) {
	for n, want := range map[scrapes]string{0: Nothing.Error(), 2: "cannot tell: fewer than 3 scrapes were recorded in that time"} {
		if got, err := Interval(t.Context(), n, time.Now()); err == nil || err.Error() != want {
			t.Errorf("of %d scrapes: %v, %v", n, got, err)
		}
	}
	if got, err := Interval(t.Context(), scrapes(5), time.Now()); err != nil || got != 5*time.Second {
		t.Errorf("%v: %v", got, err)
	}
}

// TestInterval: extra scrapes at the boundaries of phases, and lost scrapes, do not change the interval.
func TestInterval(t *testing.T) {
	for name, c := range map[string]struct {
		gaps []float64
		want time.Duration
	}{
		"regular":            {[]float64{15, 15, 15}, 15 * time.Second},
		"jitter":             {[]float64{4.9, 4.99, 5.01, 5.2}, 5 * time.Second},
		"boundaries":         {[]float64{0.1, 0.4, 1.2, 2, 3, 3.8, 4.6, 4.9, 5, 5, 5, 5, 5, 5}, 5 * time.Second},
		"a fifth lost":       {[]float64{5, 5, 5, 5, 5, 5, 10, 10}, 5 * time.Second},
		"of several clients": {[]float64{30, 30, 30, 29, 31}, 30 * time.Second},
	} {
		if got := nearestInterval(slices.Sorted(slices.Values(c.gaps))); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// jobs answers with a target of each job, by the interval of its scrapes.
type jobs map[string]time.Duration

func (j jobs) Range(_ context.Context, _ string, start, end time.Time, _ time.Duration) (all []archive.Series, err error) {
	for job, interval := range j {
		one := archive.Series{Labels: map[string]string{"job": job}}
		for at := start; !at.After(end); at = at.Add(interval) {
			one.Points = append(one.Points, archive.Point{T: at, V: float64(at.Unix())})
		}
		all = append(all, one)
	}
	return all, nil
}

// Rates over two scrapes need two scrapes of each job, including a job that is scraped too rarely to be seen at first.
func TestIntervalOfTheSlowestJob(t *testing.T) {
	for want, source := range map[time.Duration]jobs{
		30 * time.Second: {"kube-apiserver": 15 * time.Second, "etcd": 30 * time.Second},
		2 * time.Minute:  {"kube-apiserver": 15 * time.Second, "etcd": 2 * time.Minute},
	} {
		if got, err := Interval(t.Context(), source, time.Unix(1_700_000_000, 0)); err != nil || got != want {
			t.Errorf("%v: %v, want %v: %v", source, got, want, err)
		}
	}
}
