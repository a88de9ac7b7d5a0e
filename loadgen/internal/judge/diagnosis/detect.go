package diagnosis

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/result"
)

const (
	// deviations is the minimum distance between a deviating value and the median in the comparison period, in standard
	// deviations. The standard deviation is estimated from the quartiles, so that outliers do not matter.
	deviations = 5
	// normalIQR is the distance between the quartiles of a normal distribution, in standard deviations.
	normalIQR = 1.349
	// floorShare is the minimum standard deviation, as a fraction of the median in the comparison period.
	floorShare = 0.01
	// held is the default number of consecutive scrapes in which a signal must deviate.
	held = 2
	// maxIdle is the longest time without calls (NaN values) that does not end an episode.
	maxIdle = 15 * time.Second
)

// starvedBy maps each signal that measures waiting for CPU to a factor. Waiting for CPU increases a latency by at most
// the factor times the signal, so a smaller increase of a latency is not evidence of a problem. The factors come from
// measurements. run-queue is the 90th percentile of the wait of goroutines: in an overloaded API server, the fastest
// etcd requests took longer by 8 times that wait. run-wait is the mean wait of threads: during a list flood on two busy
// processors, the WAL fsync of an etcd with a fast disk took longer by 12 times that wait.
var starvedBy = map[string]float64{"run-queue": 8, "run-wait": 16}

// episode is a time range in which a signal of one component deviates.
type episode struct {
	signal    *signal
	component string
	calm      *float64 // median in the comparison period; nil if unknown
	under     float64  // median in the episode
	began     time.Time
	earlier   bool      // whether the episode began before the diagnosed time
	ended     time.Time // end of the episode; zero if it has not ended
	last      time.Time // the time of the last value that deviates
	strength  float64
}

func (e episode) overlaps(o episode, slack time.Duration) bool {
	return !e.began.After(o.last.Add(slack)) && !o.began.After(e.last.Add(slack))
}

// change returns the difference between the median in the episode and the median in the comparison period.
func (e episode) change() float64 {
	if e.calm == nil {
		return e.under
	}
	return e.under - *e.calm
}

func (e episode) evidence() result.Evidence {
	return result.Evidence{
		Signal: e.signal.Name, What: e.signal.What, Component: e.component, Unit: e.signal.Unit, Calm: e.calm, Under: e.under,
		Began: e.began, Ended: e.ended, Strength: e.strength,
	}
}

// baseline is a signal's distribution in the comparison period.
type baseline struct {
	median, deviation float64
	known             bool // false if no value was recorded
	idle              bool // whether there were no calls (only NaN values) in the comparison period
	fresh             bool // whether the process was not scraped in the comparison period
	none              bool // whether there was no comparison period
}

func baselineOf(points []archive.Point, calm result.Span) baseline {
	var values []float64
	idle := false
	for _, p := range points {
		switch {
		case p.T.Before(calm.From) || p.T.After(calm.To):
		case finite(p.V):
			values = append(values, p.V)
		default:
			idle = true
		}
	}
	if len(values) == 0 {
		return baseline{idle: idle}
	}
	slices.Sort(values)
	b := baseline{median: quantile(values, 0.5), known: true}
	b.deviation = max((quantile(values, 0.75)-quantile(values, 0.25))/normalIQR, floorShare*math.Abs(b.median))
	return b
}

// quantile returns the q-quantile of sorted values, interpolated between the two nearest values.
func quantile(sorted []float64, q float64) float64 {
	at := q * float64(len(sorted)-1)
	low := int(at)
	if low+1 >= len(sorted) {
		return sorted[low]
	}
	return sorted[low] + (at-float64(low))*(sorted[low+1]-sorted[low])
}

// deviates reports whether the value v deviates from b, the distribution in the comparison period. It multiplies all
// bounds by share, which is 1, or less to find values that only come near a bound. starved is the maximum increase of a
// latency that waiting for CPU explains.
func (s *signal) deviates(v float64, b baseline, share, starved float64) bool {
	switch {
	case !finite(v):
		return false
	case s.Limit != nil && v >= *s.Limit+starved:
		return true
	case s.Level:
		return v >= share**s.Over
	case b.none && s.Over == nil:
		return false
	case s.Over != nil: // a value that was as high in the comparison period does not deviate
		return v >= share**s.Over && !(b.known && (b.median >= share**s.Over || v < share*s.Times*b.median))
	case !b.known && (s.Source == "" || b.fresh):
		return false // no value to compare v with
	case b.idle && s.Idle > 0:
		return v >= share*s.Idle
	case s.Down:
		return b.known && b.median-v >= share*max(deviations*b.deviation, s.Least) && v <= b.median*(1-share*s.Share)
	}
	return v-b.median >= max(starved, share*max(deviations*b.deviation, s.Least)) && v >= b.median*share*s.Times
}

// strength returns the distance of a value from the median in the comparison period, in standard deviations. For a
// fixed bound, or for an objective without a comparison period, the strength is instead proportional to the value, and
// 5 at the bound or objective.
func (s *signal) strength(v float64, b baseline) float64 {
	one := max(b.deviation, s.Least/deviations)
	if s.Over != nil {
		return deviations * v / *s.Over
	}
	if b.none {
		return deviations * v / *s.Limit
	}
	if one == 0 {
		return deviations
	}
	return math.Abs(v-b.median) / one
}

// episodesOf returns the episodes (deviations) of all series, sorted by start. It multiplies all bounds by share. If
// the diagnosed time begins at the end of the comparison period, it also searches that period, for signals with
// signal.Level or signal.Limit.
func episodesOf(all []series, waits starvation, o Options, share float64) (episodes []episode) {
	for _, one := range all {
		under := o.Under
		if (one.signal.Level || one.signal.Limit != nil) && o.Calm.To.Equal(under.From) {
			under.From = o.Calm.From
		}
		found := one.episodes(o.Calm, under, o.Step, share, waits)
		if under != o.Under { // within the comparison period, only Level and Limit apply
			found = slices.DeleteFunc(found, func(e episode) bool {
				return !one.signal.Level && e.last.Before(o.Under.From) && e.under < *one.signal.Limit
			})
		}
		episodes = append(episodes, found...)
	}
	slices.SortFunc(episodes, byTime)
	return episodes
}

// starvation holds the maximum time, in seconds, that waiting for CPU adds to a latency, by component and time.
type starvation map[string]map[time.Time]float64

func starvationOf(all []series) starvation {
	waits := starvation{}
	for _, one := range all {
		times, ok := starvedBy[one.signal.Name]
		if !ok {
			continue
		}
		of := waits[one.component]
		if of == nil {
			of = map[time.Time]float64{}
			waits[one.component] = of
		}
		for _, p := range one.points {
			if finite(p.V) {
				of[p.T] = max(of[p.T], times*p.V)
			}
		}
	}
	return waits
}

// least returns the maximum increase of a component's signal, in seconds, that waiting for CPU explains. It is 0 for
// symptoms, because symptoms always need a cause. For a component without a measured wait, such as a webhook, it uses
// the longest wait of an API server, because API servers measure the latency of webhooks.
func (w starvation) least(s *signal, component string, at time.Time) (wait float64) {
	if _, is := starvedBy[s.Name]; is || s.Symptom || s.Unit != unitSeconds {
		return 0
	}
	if of, ok := w[component]; ok {
		return of[at]
	}
	for name, of := range w {
		if isAPIServer(name) {
			wait = max(wait, of[at])
		}
	}
	return wait
}

func (one series) episodes(calm, under result.Span, step time.Duration, share float64, waits starvation) []episode {
	s, component, points := one.signal, one.component, one.points
	b := baselineOf(points, calm)
	b.fresh, b.none = one.fresh, calm.To.Sub(calm.From) < (minScrapes-1)*step
	deviates := func(p archive.Point) bool { return s.deviates(p.V, b, share, waits.least(s, component, p.T)) }
	var all []episode
	var run []archive.Point
	gap := 0
	// before is the start of the episode. It is the time of the last value before the episode, because the first rate in
	// the episode covers the time since that value.
	var before, after time.Time
	var previous time.Time
	var seen time.Time           // time of the last value of run or, if later, of the last NaN (no calls) after run
	was, earlier := false, false // was: the previous value deviated; earlier: the last value before run deviated
	end := func() {
		if len(run) >= s.hold() && !run[len(run)-1].T.Before(before.Add(s.Lasts)) {
			values := make([]float64, len(run))
			for i, p := range run {
				values[i] = p.V
			}
			slices.Sort(values)
			e := episode{signal: s, component: component, under: quantile(values, 0.5), began: before, earlier: earlier, ended: after, last: run[len(run)-1].T}
			if b.known {
				e.calm = &b.median
			}
			e.strength = s.strength(e.under, b)
			all = append(all, e)
		}
		run, gap, after = nil, 0, time.Time{}
	}
	// End the run if the signal has had no values for some time.
	vanished := func(now time.Time) {
		if len(run) > 0 && now.Sub(seen) > 3*step && gap == 0 {
			after = run[len(run)-1].T.Add(step)
			end()
		}
	}
	for _, p := range points {
		if p.T.Before(under.From) {
			previous, was = p.T, deviates(p)
			continue
		}
		if p.T.After(under.To) {
			break
		}
		vanished(p.T)
		switch {
		case deviates(p):
			if len(run) == 0 {
				earlier = was
				before = p.T.Add(-step)
				if !previous.IsZero() && previous.After(before) {
					before = previous
				}
			}
			run, gap, after, seen = append(run, p), 0, time.Time{}, p.T
		case len(run) > 0 && !finite(p.V) && p.T.Sub(run[len(run)-1].T) <= max(maxIdle, 3*step): // no calls
			seen = p.T
		case len(run) > 0:
			if gap == 0 {
				after = run[len(run)-1].T.Add(step)
			}
			if gap++; gap > 1 {
				end()
			}
		}
		previous, was = p.T, false
	}
	vanished(under.To)
	end()
	return all
}

// byTime orders episodes (deviations) by start. Among episodes that began at the same time, the strongest one comes
// first.
func byTime(a, b episode) int {
	return cmp.Or(a.began.Compare(b.began), cmp.Compare(b.strength, a.strength), cmp.Compare(a.component, b.component), cmp.Compare(a.signal.Name, b.signal.Name))
}
