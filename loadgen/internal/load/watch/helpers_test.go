package watch

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const (
	testWatches = 7
	testWrites  = 60
)

// someObjects implements Objects for n ConfigMaps that exist already.
type someObjects struct{ n int }

func (o someObjects) Prepare(context.Context) error { return nil }
func (o someObjects) Len() int                      { return o.n }
func (o someObjects) Collection() string            { return stubPath }
func (o someObjects) AppendPath(b []byte, i int) []byte {
	return strconv.AppendInt(append(b, stubPath+"/flood-"...), int64(i), 10)
}
func (o someObjects) AppendPatch(b []byte, _ int, turn int64, key string, value []byte) []byte {
	return fmt.Appendf(b, `{"metadata":{"annotations":{%q:%q}},"data":{"payload":"%d"}}`, key, value, turn)
}

// newLoad returns a scenario's load with its defaults set.
func newLoad(kind string, change func(*scenario.Load)) scenario.Load {
	l := scenario.Load{
		Name: kind, Kind: kind, Rate: 500, Arrival: "constant", MaxInFlight: 1000, Connections: 1,
		Timeout: scenario.Duration(10 * time.Second), Operation: scenario.Operation{Resource: "configmaps", Encoding: "json", Form: "object"},
		Objects: 3, Size: 64, Connect: "shared", Start: "list", Count: testWatches,
	}
	if change != nil {
		change(&l)
	}
	return l
}

func pacer(t testing.TB, rate float64) arrival.Pacer {
	t.Helper()
	p, err := arrival.New("constant", rate, 1)
	must(t, err)
	return p
}

// storm is a load of watches on a stub, and a load of writes to the watched objects.
type storm struct {
	*stub
	watches     *Watches
	changes     *Changes
	writes      *request.Requests
	stopWatches func()
	stopWrites  func()
}

// startStorm opens the watches and starts writing.
func startStorm(t *testing.T, s *stub, target load.Target, change func(*scenario.Load)) *storm {
	t.Helper()
	w, err := New(target, newLoad("watches", change), pacer(t, 500), someObjects{3})
	must(t, err)
	l := newLoad("changes", func(l *scenario.Load) { l.Rate, l.Watches = 300, "watches" })
	c, err := NewChanges(target, l, w)
	must(t, err)
	r, err := request.New(target, l, c, pacer(t, 300))
	must(t, err)
	for _, l := range []load.Load{w, r} {
		must(t, l.Prepare(t.Context()))
		l.BeginPhase("storm", time.Now())
	}
	st := &storm{stub: s, watches: w, changes: c, writes: r}
	st.stopWatches = start(t, w)
	select {
	case <-w.AllOpen():
	case <-time.After(patience):
		t.Fatalf("%d of %d watches are open", w.Open(), testWatches)
	}
	st.stopWrites = start(t, r)
	return st
}

// flood runs a storm until testWrites more writes are acknowledged, and returns the results and the number of
// acknowledged writes. It calls `during` after the first writes are acknowledged.
func flood(t *testing.T, s *stub, change func(*scenario.Load), during func(*storm)) (result.Watches, int64) {
	t.Helper()
	st := startStorm(t, s, s.target(), change)
	await(t, "some writes", func() bool { return s.count(&s.patches) >= testWrites/3 })
	if during != nil {
		during(st)
	}
	enough := s.count(&s.patches) + testWrites
	await(t, "all writes", func() bool { return s.count(&s.patches) >= enough })
	return st.finish(t)
}

// finish stops the writes and drains the watches.
func (st *storm) finish(t *testing.T) (result.Watches, int64) {
	t.Helper()
	st.stopWrites()
	await(t, "all watches", func() bool { return st.watches.Open() == testWatches })
	if _, err := st.watches.Drain(t.Context(), 2*time.Second); err != nil {
		t.Fatal(err)
	}
	got, acknowledged := st.watches.Results()["storm"], st.changes.Acknowledged()["storm"]
	checkAccount(t, got, acknowledged)
	return got, acknowledged
}

// checkAccount checks the invariants of the results.
func checkAccount(t *testing.T, w result.Watches, acknowledged int64) {
	t.Helper()
	if want := acknowledged * testWatches; w.Expected != want || want == 0 {
		t.Errorf("expected %d deliveries, want %d writes x %d watches", w.Expected, acknowledged, testWatches)
	}
	if w.Lost != w.Expected-w.Delivered || w.Lost > 0 != (w.Lossy > 0) || w.WorstLost > w.Lost || w.WorstLost*int64(w.Lossy) < w.Lost {
		t.Errorf("lost %d by %d watches, at most %d, but %d of %d delivered", w.Lost, w.Lossy, w.WorstLost, w.Delivered, w.Expected)
	}
	if w.Wanted != testWatches || w.Open != testWatches || w.OpenLatency.Count != testWatches {
		t.Errorf("%d of %d watches open, %d openings timed; want all %d", w.Open, w.Wanted, w.OpenLatency.Count, testWatches)
	}
}

const patience = 30 * time.Second

// start runs a load. It returns a function that stops the load and waits for its end.
func start(t testing.TB, l load.Load) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-ended; err != nil {
				t.Errorf("the load ended: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

// await waits until the condition holds. It fails the test after half a minute.
func await(t *testing.T, what string, holds func() bool) {
	t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-look.C:
		case <-deadline:
			t.Fatalf("waited 30 s for %s", what)
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
