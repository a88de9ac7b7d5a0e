package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/balancer"
	"github.com/stormglass/stormglass/controlplane/internal/fault"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// The components of these tests are shell scripts, because the supervisor's reaction to their exits needs no control
// plane.

const (
	scheduler = "kube-scheduler-0"
	manager   = "kube-controller-manager-0"
	// lasting is a script that runs until it is killed.
	lasting = "exec sleep 1000"
)

// supervised is a plane whose scheduler, controller manager and further components are scripts.
type supervised struct {
	*Supervisor
	events fault.Events
	faults *fault.Manager
	died   chan error
	lines  chan string // progress messages
	// inService replaces the load balancer's answer.
	inService func(name string) bool
}

// faultHost adds to a Supervisor the methods that faults need. The tests do not call the methods of rest, which is nil.
type faultHost struct {
	*Supervisor
	rest
}

type rest struct{ fault.Host }

func (faultHost) Config() control.Config    { return control.Config{} }
func (faultHost) Available() error          { return nil }
func (faultHost) NeighbourAvailable() error { return nil }

// supervise starts the scripts as a ready plane, and stops it at the end of the test. more are the names of further
// components. They run until they are killed.
func supervise(t *testing.T, schedulerScript, managerScript string, more ...string) *supervised {
	t.Helper()
	lock, err := os.Create(filepath.Join(t.TempDir(), "lock"))
	if err != nil {
		t.Fatal(err)
	}
	p := &supervised{died: make(chan error, 1), lines: make(chan string, 1000)}
	host := &faultHost{}
	p.faults = fault.NewManager(host, &p.events)
	layout := topology.Layout{Dir: t.TempDir()}
	closing, beginClosing := context.WithCancel(context.Background())
	lifetime, endLifetime := context.WithCancel(context.Background())
	p.Supervisor, err = New(Plane{
		Layout: layout, Order: control.Config{}.Components(), Lock: lock, Closing: closing, Lifetime: lifetime,
		Events: &p.events, Faults: p.faults,
		Progress: func(format string, args ...any) {
			fmt.Fprintf(t.Output(), format+"\n", args...)
			p.lines <- fmt.Sprintf(format, args...)
		},
		Ready:     func(context.Context, topology.Process, time.Time) error { return errors.New("a script serves nothing") },
		InService: func(name string) bool { return p.inService(name) },
		Restarted: func() {},
		Fail:      func(err error) { p.died <- err },
	})
	if err != nil {
		t.Fatal(err)
	}
	host.Supervisor = p.Supervisor
	t.Cleanup(func() { // as at the end of a plane
		beginClosing()
		if err := p.faults.Close(context.Background()); err != nil {
			t.Error(err)
		}
		now := make(chan struct{})
		close(now)
		p.StopAll(now)
		endLifetime()
		p.Close()
		lock.Close()
	})
	for _, dir := range []string{layout.Bin(), layout.Logs()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	scripts := map[string]string{scheduler: schedulerScript, manager: managerScript}
	for _, name := range more {
		scripts[name] = lasting
	}
	for name, script := range scripts {
		kind := control.ComponentKind(name)
		if err := os.WriteFile(layout.Program(kind), []byte("#!/bin/sh\n"+script+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		if _, err := p.add(topology.Process{Name: name, Kind: kind}); err != nil {
			t.Fatal(err)
		}
	}
	p.Settle()
	return p
}

// breaks begins a fault, which must succeed.
func (p *supervised) breaks(t *testing.T, f control.Fault) control.FaultStatus {
	t.Helper()
	s, err := p.faults.Begin(t.Context(), f)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// eventsOf waits for n events of a kind for a component.
func (p *supervised) eventsOf(t *testing.T, component, kind string, n int) []control.Event {
	t.Helper()
	var found []control.Event
	for after := int64(0); len(found) < n; {
		events, err := p.events.After(t.Context(), after)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			after = e.Seq
			if e.Component == component && e.Kind == kind {
				found = append(found, e)
			}
		}
	}
	return found
}

// count returns the number of a component's events of a kind so far.
func (p *supervised) count(component, kind string) (n int) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	events, _ := p.events.After(ctx, 0)
	for _, e := range events {
		if e.Component == component && e.Kind == kind {
			n++
		}
	}
	return n
}

// awaitBackoff waits until a component that has crashed twice in succession waits for its restart.
func (p *supervised) awaitBackoff(component string) {
	for line := range p.lines {
		if strings.HasPrefix(line, component+" ") && strings.Contains(line, "; restarts in 10s, as the kubelet would restart it") {
			return
		}
	}
}

var limited = control.Fault{Kind: control.FaultDescriptors, Components: []string{manager}, Limit: 20}

// If the kernel kills a component for lack of memory, the supervisor starts it again, like the kubelet. This also holds
// during a fault.
func TestExitBySignalUnderFault(t *testing.T) {
	p := supervise(t, lasting, lasting)
	f := p.breaks(t, limited)
	l, err := p.running(scheduler)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.child.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if exit := p.eventsOf(t, scheduler, control.EventExit, 1)[0]; exit.Expected || !strings.HasPrefix(exit.Detail, "ended by SIGKILL") {
		t.Errorf("exit event = %s, want an unexpected SIGKILL", exit.Detail)
	}
	p.eventsOf(t, scheduler, control.EventStart, 1)
	if _, err := p.faults.Clear(t.Context(), f.ID); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-p.died:
		t.Fatalf("the plane has ended: %v", err)
	default:
	}
}

// The supervisor starts a component of any kind again after a crash, like the kubelet, and the status counts the
// restart. The plane does not end. After another crash in succession, the supervisor waits for the back-off.
func TestExitBySignalWithoutFault(t *testing.T) {
	all := []string{"etcd-0", "kube-apiserver-0", scheduler, manager}
	p := supervise(t, lasting, lasting, all[:2]...)
	kill := func(name string) {
		t.Helper()
		if err := p.Signal(name, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range all {
		kill(name)
		if exit := p.eventsOf(t, name, control.EventExit, 1)[0]; exit.Expected || !strings.HasPrefix(exit.Detail, "ended by SIGKILL") {
			t.Errorf("exit event = %+v, want an unexpected SIGKILL", exit)
		}
		p.eventsOf(t, name, control.EventStart, 1)
		for _, c := range p.Status() {
			if want := p.count(c.Name, control.EventStart); c.Restarts != want || want > 1 || c.Name == name && want != 1 {
				t.Errorf("after the end of %s, %s has %d restarts and %d starts", name, c.Name, c.Restarts, want)
			}
		}
	}
	for _, name := range all {
		kill(name)
		p.awaitBackoff(name)
	}
	select {
	case err := <-p.died:
		t.Errorf("the plane has ended: %v", err)
	default:
	}
}

// A kill fault on a component that waits for its back-off keeps the component down until the fault ends. The supervisor
// does not start it after the back-off.
func TestKillDuringBackoffPreventsRestart(t *testing.T) {
	dir := t.TempDir()
	fails := filepath.Join(dir, "fails")
	if err := syscall.Mkfifo(fails, 0o600); err != nil {
		t.Fatal(err)
	}
	// Only built-in commands of the shell: another process could still write to dir after the shell has ended.
	p := supervise(t, "cd "+dir+"; if [ ! -e once ]; then : >once; read line <fails; exit 1; fi; "+lasting, lasting)
	p.breaks(t, limited)
	m, l, err := p.find(scheduler)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	m.crashes = 1 // so that the back-off is ten seconds
	p.mu.Unlock()
	if err := os.WriteFile(fails, nil, 0); err != nil { // the scheduler exits now
		t.Fatal(err)
	}
	p.eventsOf(t, scheduler, control.EventExit, 1)
	kill := p.breaks(t, control.Fault{Kind: control.FaultKill, Components: []string{scheduler}})
	if revived, err := p.revive(m, l); revived || err != nil {
		t.Errorf("after the back-off, revive = %v, %v; want false", revived, err)
	}
	if n := p.count(scheduler, control.EventStart); n != 0 {
		t.Errorf("the scheduler was started %d times during the kill", n)
	}
	if _, err := p.faults.Clear(t.Context(), kill.ID); err != nil {
		t.Error(err)
	}
	if revived, err := p.revive(m, l); revived || err != nil {
		t.Errorf("after the kill, revive = %v, %v; want false", revived, err)
	}
	if n := p.count(scheduler, control.EventStart); n != 1 {
		t.Errorf("the scheduler was started %d times, want once", n)
	}
	if _, err := p.running(scheduler); err != nil {
		t.Error(err)
	}
}

// The time limit of a graceful stop leaves a margin for a busy machine, even if all components use their grace periods.
func TestStopFitsTimeLimit(t *testing.T) {
	longest := 14 * time.Second // to undo faults and to send the last responses, see control.StopWithin
	for _, kinds := range stopOrder() {
		longest += stopGrace(kinds[0])
	}
	if margin := control.StopWithin - longest; margin < 5*time.Second {
		t.Errorf("a stop may take %s, and the time limit leaves a margin of %s, want at least 5s", longest, margin)
	}
}

// A component that waits for its back-off is dead. A component that a fault or a restore has ended is not, because the
// fault or the restore starts it again.
func TestDiedCountsComponentsInBackoff(t *testing.T) {
	const etcd = "etcd-0"
	p := supervise(t, lasting, lasting, etcd)
	want := func(n int, when string) {
		t.Helper()
		if got := p.Died(control.KindEtcd); got != n {
			t.Errorf("Died %s = %d, want %d", when, got, n)
		}
	}
	want(0, "while etcd runs")
	c, _, err := p.find(etcd)
	if err != nil {
		t.Fatal(err)
	}
	p.mu.Lock()
	c.crashes = 1 // so that the back-off is ten seconds
	p.mu.Unlock()
	if err := p.Signal(etcd, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.awaitBackoff(etcd)
	want(1, "during the back-off")
	kill := p.breaks(t, control.Fault{Kind: control.FaultKill, Components: []string{etcd}})
	want(0, "during a kill")
	if _, err := p.faults.Clear(t.Context(), kill.ID); err != nil {
		t.Fatal(err)
	}
	claim, err := p.Claim()
	if err != nil {
		t.Fatal(err)
	}
	defer claim.Release()
	now := make(chan struct{})
	close(now)
	claim.Stop(now)
	want(0, "during a restore")
}

// AwaitReady returns only when the load balancer sends an API server connections. Otherwise, a rollout would stop the
// last API server while clients still reach no other.
func TestAwaitReadyChecksLoadBalancer(t *testing.T) {
	var ready atomic.Bool
	asked := make(chan struct{}, 1)
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
		select {
		case asked <- struct{}{}:
		default:
		}
	}))
	defer api.Close()
	p := supervise(t, lasting, lasting)
	lb, err := balancer.Listen("127.0.0.1:0", []balancer.Backend{{Name: scheduler, Address: api.Listener.Addr().String(), Ready: api.URL}},
		http.DefaultClient, balancer.Options{Interval: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer lb.Close()
	p.inService = func(name string) bool {
		return !slices.ContainsFunc(lb.States(), func(s balancer.State) bool { return s.Name == name && !s.Ready })
	}
	l, err := p.running(scheduler)
	if err != nil {
		t.Fatal(err)
	}
	close(l.serves)
	served := make(chan error, 1)
	go func() { served <- p.AwaitReady(t.Context(), scheduler) }()
	for range 100 { // AwaitReady has then called InService about four times
		<-asked
	}
	select {
	case err := <-served:
		t.Fatalf("AwaitReady returned while the load balancer sends no connections: %v", err)
	default:
	}
	ready.Store(true)
	if err := <-served; err != nil {
		t.Error(err)
	}
}
