package workers

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
	"github.com/stormglass/stormglass/loadgen/internal/generator"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/kind"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// session is the state of a run in a worker process.
type session struct {
	link     *link
	now      func() time.Time
	clock    atomic.Pointer[clock]
	token    apiclient.Token
	loads    map[string]load.Load
	order    []string
	nodes    *nodesShare          // nil if the worker has no nodes
	registry *prometheus.Registry // metrics of the loads and nodes
	self     *generator.SelfMeter
	samples  *samples.Recorder
	pause    *load.Pause
	beside   sync.WaitGroup // background goroutines

	mu     sync.Mutex
	stops  map[string]context.CancelFunc // functions that stop the running loads, by name
	phases []string
	acks   []load.Ack // acknowledged writes that were not sent to the coordinator yet

	// sendAcks locks `sending`. So the acks arrive before any message that is sent after sendAcks has returned.
	sending sync.Mutex
}

// learner is a load that must know the acknowledged writes of other workers, to measure when watches deliver them.
type learner interface{ Learn(load.Ack) }

// newSession creates the worker's share of the loads and nodes. It sends no request to the target.
func newSession(l *link, in welcome, now func() time.Time) (*session, error) {
	s := &session{
		link: l, now: now, loads: map[string]load.Load{}, registry: prometheus.NewRegistry(), stops: map[string]context.CancelFunc{},
		pause: load.NewPause(),
	}
	s.clock.Store(&clock{})
	read, err := readScenario(in)
	if err != nil {
		return nil, err
	}
	told := plan.Of(read)
	if s.self, err = generator.NewSelfMeter(prometheus.NewRegistry()); err != nil {
		return nil, err
	}
	s.samples = samples.Sending(func(slot samples.Slot) error { return l.send(message{Slot: &slot}) }, s.coordinatorNow)
	t := in.Target
	config := t.config(&s.token)
	made, err := kind.MakeSome(told, load.Target{
		Config: config, Namespace: t.Namespace, Namespaces: t.Namespaces, Labels: t.Labels, NodeSelector: t.NodeSelector,
		Tolerations: t.Tolerations, Seed: t.Seed, Registerer: s.registry, Samples: s.samples, Stalls: s.self.Stalls(),
		Share: in.Share, Acknowledged: s.acknowledged, Pause: s.pause,
	}, "", kind.Divides)
	if err != nil {
		return nil, err
	}
	for i, at := range told.Loads {
		if made[i] != nil {
			s.loads[at.Name] = made[i]
			s.order = append(s.order, at.Name)
		}
	}
	if s.nodes, err = s.newNodes(in, read, config); err != nil {
		return nil, err
	}
	s.self.Backlog(func() (sum int64) {
		for _, l := range s.loads {
			sum += l.Backlog()
		}
		return sum
	})
	return s, nil
}

// readScenario parses the scenario in the welcome message. If the scenario refers to files, it first writes them to a
// temporary directory.
func readScenario(in welcome) (*scenario.Scenario, error) {
	if len(in.Files) == 0 {
		return scenario.ParseRecorded(result.ScenarioFile, in.Scenario)
	}
	dir, err := os.MkdirTemp("", "stormglass-worker-")
	if err != nil {
		return nil, fmt.Errorf("create a directory for the files of the scenario: %w (the worker needs a directory for temporary files: set $TMPDIR)", err)
	}
	defer os.RemoveAll(dir)
	files := maps.Clone(in.Files)
	files[result.ScenarioFile] = in.Scenario
	for name, text := range files {
		if !filepath.IsLocal(name) {
			return nil, fmt.Errorf("the scenario has a file %q outside its directory", name)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	return scenario.ReadRecorded(filepath.Join(dir, result.ScenarioFile))
}

func (s *session) coordinatorNow() time.Time { return s.clock.Load().there(s.now()) }

// acknowledged queues an acknowledged write of this worker. The coordinator passes it on to the other workers.
func (s *session) acknowledged(a load.Ack) {
	c := s.clock.Load()
	a.At, a.Uncertain = c.there(a.At), c.Uncertainty
	s.mu.Lock()
	defer s.mu.Unlock()
	s.acks = append(s.acks, a)
}

// ackEvery is the interval at which a worker sends acknowledged writes to the coordinator.
const ackEvery = 20 * time.Millisecond

func (s *session) sendAcks() error {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.mu.Lock()
	acks := s.acks
	s.acks = nil
	s.mu.Unlock()
	if len(acks) == 0 {
		return nil
	}
	return s.link.send(message{Acks: acks})
}

// learn passes acknowledged writes of other workers to the loads that measure their delivery.
func (s *session) learn(acks []load.Ack) {
	c := s.clock.Load()
	for _, a := range acks {
		if l, ok := s.loads[a.Load].(learner); ok {
			a.At, a.Uncertain = c.here(a.At), a.Uncertain+c.Uncertainty
			l.Learn(a)
		}
	}
}

// run executes the coordinator's messages until the run ends. If the connection fails, run stops the loads and returns
// an error.
func (s *session) run(parent context.Context) error {
	ctx, cancel := context.WithCancel(parent)
	defer s.beside.Wait()
	defer s.nodes.stop(context.Background())
	defer cancel()
	s.beside.Go(func() { _ = s.self.Run(ctx) })
	recording, stopRecording := context.WithCancel(ctx)
	defer stopRecording()
	var recorder sync.WaitGroup
	recorder.Go(func() { _ = s.samples.Run(recording) }) // if the connection fails, receive below returns the error
	s.beside.Go(func() {
		for apiclient.Pause(ctx, ackEvery) && s.sendAcks() == nil {
		}
	})
	s.beside.Go(func() {
		for apiclient.Pause(ctx, aliveEvery) && s.sendLive() == nil {
		}
	})
	for name, l := range s.loads {
		s.announce(ctx, l.AllOpen(), message{Opened: name})
		if dry, ok := l.(interface{ Over() <-chan struct{} }); ok {
			s.announce(ctx, dry.Over(), message{Over: name})
		}
	}
	if err := s.link.send(message{Reply: &reply{}}); err != nil {
		return err
	}
	for {
		m, err := s.link.receive(largestMessage, lostAfter)
		if err != nil {
			return err
		}
		switch {
		case m.Clock != nil:
			s.clock.Store(m.Clock)
		case m.Token != "":
			s.token.Set(m.Token)
		case m.Acks != nil:
			s.learn(m.Acks)
		case m.Given != nil && s.nodes != nil && s.nodes.asked != nil:
			s.nodes.asked.take(*m.Given)
		case m.NodeTokens != nil && s.nodes != nil && s.nodes.asked != nil:
			s.nodes.asked.renew(m.NodeTokens)
		case m.Call != nil && m.Call.Verb == verbEnd:
			stopRecording()
			recorder.Wait()
			if err := s.samples.Close(); err != nil {
				return err
			}
			r := s.results()
			return s.link.send(message{Reply: &reply{ID: m.Call.ID, Results: &r}})
		case m.Call != nil:
			s.obey(ctx, *m.Call)
		}
	}
}

// announce sends m when `done` is closed. If `done` is nil, it does nothing.
func (s *session) announce(ctx context.Context, done <-chan struct{}, m message) {
	if done == nil {
		return
	}
	s.beside.Go(func() {
		select {
		case <-done:
			_ = s.link.send(m) // if the connection fails, the session ends
		case <-ctx.Done():
		}
	})
}

func (s *session) sendLive() error {
	live := map[string]load.Live{}
	for name, l := range s.loads {
		live[name] = l.Live()
	}
	if err := s.link.send(message{Live: live}); err != nil || s.nodes == nil {
		return err
	}
	nodes := s.nodes.fleet.Live()
	return s.link.send(message{Nodes: &nodes})
}

// obey executes a call. If the verb may take time, it executes the call in the background.
func (s *session) obey(ctx context.Context, c call) {
	l := s.loads[c.Load]
	beside := func(do func() reply) {
		s.beside.Go(func() {
			r := do()
			r.ID = c.ID
			_ = s.link.send(message{Reply: &r}) // if the connection fails, the session ends
		})
	}
	switch c.Verb {
	case verbTime:
		_ = s.link.send(message{Reply: &reply{ID: c.ID, Time: s.now()}})
	case verbPhase:
		s.beginPhase(c.Name, s.clock.Load().here(c.At))
		_ = s.link.send(message{Reply: &reply{ID: c.ID}})
	case verbResults:
		beside(func() reply { r := s.results(); return reply{Results: &r} })
	case verbMetrics:
		beside(s.metrics)
	case verbPause:
		s.pause.Begin(s.clock.Load().here(c.At))
	case verbResume:
		s.pause.End(s.clock.Load().here(c.At))
	case verbStop:
		s.mu.Lock()
		stop := s.stops[c.Load]
		s.mu.Unlock()
		if stop != nil {
			stop()
		}
	case verbPrepare, verbRun, verbSettle:
		if l == nil {
			beside(func() reply { return reply{Error: "it has no load " + c.Load} })
			return
		}
		s.obeyLoad(ctx, l, c, beside)
	case verbNodesStart, verbNodesAble, verbNodesHit, verbNodesStop:
		s.obeyNodes(ctx, c, beside)
	default:
		beside(func() reply { return reply{Error: "it does not know the command " + c.Verb} })
	}
}

func (s *session) obeyLoad(ctx context.Context, l load.Load, c call, beside func(func() reply)) {
	switch c.Verb {
	case verbPrepare:
		beside(func() reply { return failed(l.Prepare(ctx)) })
	case verbSettle:
		beside(func() reply { l.Settle(ctx); return reply{} })
	case verbRun:
		start, late := s.startsAt(c, "load "+c.Load)
		if late != nil {
			beside(func() reply { return *late })
			return
		}
		running, stop := context.WithCancel(ctx)
		s.mu.Lock()
		s.stops[c.Load] = stop
		s.mu.Unlock()
		beside(func() reply {
			defer stop()
			if !apiclient.Pause(running, time.Until(start)) {
				return reply{}
			}
			err := l.Run(load.StartAt(running, start))
			if running.Err() != nil {
				err = nil
			}
			r := failed(err)
			if err := s.sendAcks(); err != nil {
				r = failed(err)
			}
			return r
		})
	}
}

func failed(err error) reply {
	if err == nil {
		return reply{}
	}
	return reply{Error: err.Error()}
}

func (s *session) beginPhase(name string, at time.Time) {
	s.mu.Lock()
	s.phases = append(s.phases, name)
	s.mu.Unlock()
	s.self.BeginPhase(name)
	for _, l := range s.loads {
		l.BeginPhase(name, at)
	}
}

func (s *session) results() results {
	s.mu.Lock()
	phases := s.phases[:len(s.phases):len(s.phases)]
	s.mu.Unlock()
	r := results{Loads: map[string][]load.Part{}, Saturated: map[string][]string{}}
	var m result.Measurements
	for _, name := range phases {
		m.Phases = append(m.Phases, result.Phase{Name: name})
	}
	for _, name := range s.order {
		l := s.loads[name]
		l.AddTo(&m)
		if d, ok := l.(load.Divided); ok {
			r.Loads[name] = d.Parts()
		}
	}
	r.Nodes = s.nodes.tally()
	r.Generator = s.self.Results()
	r.Saturated[""] = r.Generator.Saturated
	for _, p := range m.Phases {
		if lines := append(s.self.PhaseSaturation(p.Name), generator.LoadSaturation(p)...); len(lines) > 0 {
			r.Saturated[p.Name] = lines
		}
	}
	return r
}

func (s *session) metrics() reply {
	families, err := s.registry.Gather()
	if err != nil {
		return failed(err)
	}
	packed, err := packMetrics(families)
	if err != nil {
		return failed(err)
	}
	return reply{Metrics: packed}
}
