package workers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/stubapi"
	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn/h2test"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
)

// threads starts workers as goroutines of the test. The test can kill each of them.
type threads struct {
	t     *testing.T
	build string
	clock func(index int) func() time.Time // nil: the machine's clock

	mu    sync.Mutex
	kills map[int]context.CancelFunc
	ends  map[int]error
	all   sync.WaitGroup
}

func (s *threads) Start(_ context.Context, i Invitation, ended func(int, error)) (Started, error) {
	s.kills, s.ends = map[int]context.CancelFunc{}, map[int]error{}
	for index := range i.Count {
		ctx, kill := context.WithCancel(context.Background())
		s.kills[index] = kill
		w := s.worker(i, index)
		s.all.Go(func() {
			err := w.Work(ctx)
			s.mu.Lock()
			s.ends[index] = err
			s.mu.Unlock()
			if err == nil {
				err = errors.New("it ended early")
			}
			ended(index, err)
		})
	}
	return Started{Stop: func() error { s.all.Wait(); return nil }}, nil
}

// ended waits until all workers have ended, and returns their errors by index.
func (s *threads) ended() map[int]error {
	s.all.Wait()
	return s.ends
}

func (s *threads) Describe(count int, run string) string {
	return fmt.Sprintf("%d threads for %s", count, run)
}

func (s *threads) worker(i Invitation, index int) Worker {
	w := Worker{
		Coordinator: i.Address, CAFile: i.CAFile, TokenFile: i.TokenFile, Index: index, Build: s.build,
		Step: func(string, ...any) {},
	}
	if s.clock != nil {
		w.now = s.clock(index)
	}
	return w
}

// bench is a coordinator with its workers and a stub API server.
type bench struct {
	t       *testing.T
	server  *stubapi.Server
	fleet   *Fleet
	threads *threads
	plan    *plan.Plan
	dir     string
	samples *samples.Recorder
	steps   []string
	mu      sync.Mutex
}

func (b *bench) step(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.steps = append(b.steps, fmt.Sprintf(format, args...))
}

func (b *bench) said(text string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Contains(strings.Join(b.steps, "\n"), text)
}

// newBench returns a bench for `of` workers, which have not joined yet. body is the scenario.
func newBench(t *testing.T, of int, body string, change func(*threads, *Options)) *bench {
	t.Helper()
	b := &bench{t: t, plan: plan.Of(parse(t, body)), dir: t.TempDir(), threads: &threads{t: t, build: "v1"}}
	var err error
	if b.server, err = stubapi.Start(stubapi.Options{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.server.Close)
	if b.samples, err = samples.Open(b.dir, nil); err != nil {
		t.Fatal(err)
	}
	o := Options{Count: of, Starter: b.threads, Within: time.Minute}
	if change != nil {
		change(b.threads, &o)
	}
	if b.fleet, err = Open(o, func() string { return "v1" }, b.step); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.fleet.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := b.fleet.Invite(t.Context(), filepath.Join(b.dir, "workers"), "test"); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) join() error {
	return b.fleet.Join(b.t.Context(), b.plan, load.Target{
		Config: b.server.Config(), Namespace: "storm", Namespaces: []string{"storm"}, Seed: 1, Samples: b.samples,
	}, "run")
}

// prepared returns a bench with `of` workers that are ready to run.
func prepared(t *testing.T, of int, body string) *bench {
	t.Helper()
	b := newBench(t, of, body, nil)
	if err := b.join(); err != nil {
		t.Fatal(err)
	}
	for _, l := range b.plan.Loads {
		if err := b.fleet.Load(l.Name).Prepare(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// running holds the running loads of a phase.
type running struct {
	stop context.CancelFunc
	done sync.WaitGroup
	mu   sync.Mutex
	err  error
}

func (b *bench) run(names ...string) *running {
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{stop: cancel}
	for _, name := range names {
		r.done.Go(func() {
			err := b.fleet.Load(name).Run(ctx)
			r.mu.Lock()
			defer r.mu.Unlock()
			r.err = errors.Join(r.err, err)
		})
	}
	b.t.Cleanup(func() { _ = r.end() })
	return r
}

func (r *running) end() error {
	r.stop()
	r.done.Wait()
	return r.err
}

// received returns the number of requests with an HTTP method that the server has received, without watches.
func (b *bench) received(method string) (n int) {
	for _, e := range b.server.Exchanges() {
		if e.Method == method && !e.Watch {
			n++
		}
	}
	return n
}

// measured returns the results of one phase.
func (b *bench) measured() result.Phase {
	b.t.Helper()
	m := result.Measurements{Phases: []result.Phase{{Name: "p"}}}
	if err := b.fleet.AddTo(&m); err != nil {
		b.t.Fatal(err)
	}
	return m.Phases[0]
}

const flood = `
phases:
- name: p
  for: 10s
  load:
  - {kind: watches, name: crowd, count: 12, rate: 1000/s, objects: 3}
  - {kind: changes, name: writes, watches: crowd, rate: 100/s}
  - {kind: requests, name: reads, verb: get, rate: 200/s, objects: 8}
`

// Three workers produce the same results as one generator: the watches of all workers receive every write, and slots
// and metrics include all requests. Each worker sends its share of the requests.
func TestWorkersGiveOneResult(t *testing.T) {
	b := prepared(t, 3, flood)
	recording, stopRecording := context.WithCancel(context.Background())
	var recorder sync.WaitGroup
	recorder.Go(func() { _ = b.samples.Run(recording) })
	b.fleet.BeginPhase("p", time.Now())
	watches := b.run("crowd")
	<-b.fleet.Load("crowd").AllOpen()
	loads := b.run("writes", "reads")
	h2test.Await(t, "writes", func() bool { return b.received("PATCH") >= 100 })
	if err := loads.end(); err != nil {
		t.Fatal(err)
	}
	b.fleet.Load("writes").Settle(t.Context())
	p := b.measured()
	if err := watches.end(); err != nil {
		t.Fatal(err)
	}
	if len(p.Watches) != 1 || len(p.Changes) != 1 || len(p.Requests) != 1 {
		t.Fatalf("results %+v", p)
	}
	w, c, r := p.Watches[0], p.Changes[0], p.Requests[0]
	if w.Wanted != 12 || w.Open != 12 || c.Acknowledged < 100 || w.Expected != 12*c.Acknowledged || w.Delivered != w.Expected || w.Lost+w.Duplicated+w.Reordered != 0 {
		t.Errorf("%d writes acknowledged, but the watches report %+v", c.Acknowledged, w)
	}
	if w.Delivery.Count != w.Delivered || w.External.Count != w.Delivered {
		t.Errorf("%d of %d deliveries have a latency", w.Delivery.Count, w.Delivered)
	}
	if r.Offered == 0 || r.Succeeded != r.Sent || r.Latency.Count != r.Sent || r.Outcomes["200"] != r.Sent {
		t.Errorf("requests %+v", r)
	}
	b.fleet.End()
	stopRecording()
	recorder.Wait()
	if err := b.samples.Close(); err != nil {
		t.Fatal(err)
	}
	slots, err := samples.Read(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	var reads, delivered int64
	for _, s := range slots {
		reads += s.Requests["reads"].Succeeded
		delivered += s.Streams["crowd"].Delivered
	}
	if reads != r.Succeeded || delivered != w.Delivered {
		t.Errorf("the slots contain %d of %d reads and %d of %d deliveries", reads, r.Succeeded, delivered, w.Delivered)
	}
	m := result.Measurements{Phases: []result.Phase{{Name: "p"}}}
	if err := b.fleet.AddTo(&m); err != nil || len(m.Workers) != 3 {
		t.Fatalf("AddTo: workers %+v, error %v; want 3 workers", m.Workers, err)
	}
	var all int64
	for _, w := range m.Workers {
		all += w.Sent
		if w.Sent == 0 || w.Generator.CPUSeconds <= 0 || w.Name == "" || w.Lost != "" {
			t.Errorf("worker %+v", w)
		}
	}
	if all != r.Sent+c.Sent {
		t.Errorf("the workers report %d requests, want %d", all, r.Sent+c.Sent)
	}
	for index, err := range b.threads.ended() {
		if err != nil {
			t.Errorf("worker %d ended with the error %v", index, err)
		}
	}
}

// A lost worker ends the run immediately. The error names the worker, and the run has no verdict.
func TestLostWorkerEndsTheRun(t *testing.T) {
	b := prepared(t, 2, `phases: [{name: p, for: 1m, load: [{kind: requests, name: reads, verb: get, rate: 100/s, objects: 4}]}]`)
	b.fleet.BeginPhase("p", time.Now())
	loads := b.run("reads")
	h2test.Await(t, "requests", func() bool { return b.received("GET") > 50 })
	b.threads.kills[1]()
	err := b.fleet.Watch(t.Context())
	if err == nil || !strings.Contains(err.Error(), "worker 1 (") || !strings.Contains(err.Error(), "was lost") {
		t.Errorf("error after a worker was killed: %v", err)
	}
	if exitcode.Of(err) != exitcode.NoData {
		t.Errorf("exit code %d, want that for no data", exitcode.Of(err))
	}
	_ = loads.end()
	m := result.Measurements{Phases: []result.Phase{{Name: "p"}}}
	if err := b.fleet.AddTo(&m); err != nil {
		t.Error(err)
	}
	if len(m.Workers) != 2 || m.Workers[1].Lost == "" || m.Workers[0].Lost != "" {
		t.Errorf("workers %+v", m.Workers)
	}
}

// The coordinator refuses a restarted worker, because it would send its requests again.
func TestWorkerThatStartsAgainIsRefused(t *testing.T) {
	b := prepared(t, 2, `phases: [{name: p, for: 1m, load: [{kind: requests, name: reads, verb: get, rate: 10/s, objects: 4}]}]`)
	err := b.threads.worker(b.invitation(), 1).Work(t.Context())
	if exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), "has already joined") || !strings.Contains(err.Error(), "repeat") {
		t.Errorf("error of the second worker 1: %v", err)
	}
	if err := b.fleet.Failed(); err != nil {
		t.Errorf("the second worker 1 failed the run: %v", err)
	}
}

func (b *bench) invitation() Invitation {
	dir := filepath.Join(b.dir, "workers")
	return Invitation{Address: b.fleet.address(), CAFile: filepath.Join(dir, "ca.pem"), TokenFile: filepath.Join(dir, "token")}
}

// The coordinator refuses a worker with a wrong clock before the load starts. The error names the worker and the
// remedy. A worker with a small offset may join, and the result contains its offset.
func TestClocksAreCompared(t *testing.T) {
	off := func(by time.Duration) func(*threads, *Options) {
		return func(s *threads, _ *Options) {
			s.clock = func(index int) func() time.Time {
				return func() time.Time { return time.Now().Add(time.Duration(index) * by) }
			}
		}
	}
	b := newBench(t, 2, reads, off(time.Second))
	err := b.join()
	if exitcode.Of(err) != exitcode.Environment || !strings.Contains(err.Error(), "worker 1 (") || !strings.Contains(err.Error(), "ahead of the coordinator's") || !strings.Contains(err.Error(), "synchronise") {
		t.Errorf("error for an offset of 1 s: %v", err)
	}
	b = newBench(t, 2, reads, off(2*time.Millisecond))
	if err := b.join(); err != nil {
		t.Fatal(err)
	}
	m := result.Measurements{}
	if err := b.fleet.AddTo(&m); err != nil {
		t.Fatal(err)
	}
	for i, w := range m.Workers {
		if wrong := w.ClockOffset - 0.002*float64(i); wrong > w.ClockUncertainty || -wrong > w.ClockUncertainty {
			t.Errorf("worker %d has an offset of %v ms, but the result says %v ± %v s", i, 2*i, w.ClockOffset, w.ClockUncertainty)
		}
	}
}

// late returns a fleet and its running load. The start time of the load reaches the second worker late, by the given
// duration.
func late(t *testing.T, by time.Duration) (*bench, *running) {
	t.Helper()
	var jump atomic.Int64 // added to the second worker's clock
	b := newBench(t, 2, reads, func(s *threads, _ *Options) {
		s.clock = func(index int) func() time.Time {
			return func() time.Time { return time.Now().Add(time.Duration(int64(index) * jump.Load())) }
		}
	})
	if err := b.join(); err != nil {
		t.Fatal(err)
	}
	if err := b.fleet.Load("reads").Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.fleet.BeginPhase("p", time.Now())
	jump.Store(int64(by))
	return b, b.run("reads")
}

// If the start time reaches a worker too late, the run ends, and the error names the worker.
func TestLateWorkerEndsTheRun(t *testing.T) {
	b, loads := late(t, 90*time.Minute)
	err := b.fleet.Watch(t.Context())
	if exitcode.Of(err) != exitcode.NoData || !strings.Contains(err.Error(), "worker 1 (") || !strings.Contains(err.Error(), "was late: it received the start time of load reads 1h") {
		t.Errorf("a worker that is 90 minutes late: %v", err)
	}
	if err := loads.end(); !errors.As(err, new(*LostError)) {
		t.Errorf("error of the late worker's load: %v, want a LostError", err)
	}
}

// A worker that was stalled for two seconds sends the overdue requests late, and the run continues.
func TestWorkerMayBeALittleLate(t *testing.T) {
	b, loads := late(t, 2*time.Second)
	var m result.Measurements
	h2test.Await(t, "reads of both workers", func() bool {
		m = result.Measurements{Phases: []result.Phase{{Name: "p"}}}
		if err := b.fleet.AddTo(&m); err != nil {
			t.Fatal(err)
		}
		return m.Workers[0].Sent > 0 && m.Workers[1].Sent > 0
	})
	if lag := m.Workers[1].LagP99; lag < 1 {
		t.Errorf("the actions of a worker that was 2 s late were %v s late", lag)
	}
	if err := loads.end(); err != nil {
		t.Error(err)
	}
}

// A run that is stopped while it starts ends in all workers: every worker gets the call to run before any worker gets
// the call to stop.
func TestRunThatIsStoppedAsItBegins(t *testing.T) {
	b := newBench(t, 3, reads, nil)
	if err := b.join(); err != nil {
		t.Fatal(err)
	}
	if err := b.fleet.Load("reads").Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := b.received("GET")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.fleet.Load("reads").Run(over); err != nil {
		t.Error(err)
	}
	if n := b.received("GET") - before; n > 0 {
		t.Errorf("the workers sent %d reads", n)
	}
}

// If a worker fails to prepare its load, the error names the worker and the cause.
func TestFailureToPrepareIsNamed(t *testing.T) {
	b := newBench(t, 2, reads, nil)
	if err := b.join(); err != nil {
		t.Fatal(err)
	}
	b.server.SetPolicy(func(stubapi.Request) stubapi.Answer { return stubapi.Answer{Status: 403} })
	err := b.fleet.Load("reads").Prepare(t.Context())
	if err == nil || !strings.Contains(err.Error(), "worker 0 (") || !strings.Contains(err.Error(), "403") {
		t.Errorf("error for a forbidden load: %v", err)
	}
}

// Close removes the credentials.
func TestCredentialsAreRemoved(t *testing.T) {
	b := newBench(t, 1, reads, nil)
	token := b.invitation().TokenFile
	if s, err := os.Stat(token); err != nil || s.Mode().Perm() != 0o600 {
		t.Errorf("token file %v (%v), want mode 0600", s, err)
	}
	if err := b.join(); err != nil {
		t.Fatal(err)
	}
	b.fleet.End()
	if err := b.fleet.Close(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(token); !os.IsNotExist(err) {
		t.Errorf("the token file still exists after Close: %v", err)
	}
}
