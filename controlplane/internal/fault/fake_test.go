package fault

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault/fsync"
	"github.com/stormglass/stormglass/controlplane/internal/service"
)

// fakeHost is a plane with three etcd members and two components of every other kind. It records each step with its
// time.
type fakeHost struct {
	begun   time.Time
	leaders map[string]string
	// elects is the time at which the controller manager acquires its lease; zero means never.
	elects time.Time
	// stopping is the time that a component takes to end gracefully, and starting the time until it is ready.
	stopping, starting time.Duration
	answers            map[string]string // responses of etcd's gateway, by path

	lost func(error) // the function `lost` of the last neighbour

	lostWebhook bool // whether a request to register each webhook got no response

	version string                       // initial version of the plane
	unready func(component string) error // why a component does not serve; if nil, all components serve

	mu     sync.Mutex
	trace  []string
	broken map[string]error // errors of steps, by the beginning of their lines in the trace
	moved  map[string]control.Release
}

func newFakeHost() *fakeHost {
	return &fakeHost{
		begun:   time.Now(),
		leaders: map[string]string{control.KindEtcd: "etcd-1", control.KindScheduler: "kube-scheduler-0"},
		broken:  map[string]error{}, answers: map[string]string{},
	}
}

// did records a step, or returns the error with which the step must fail.
func (h *fakeHost) did(format string, args ...any) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	line := fmt.Sprintf(format, args...)
	for what, err := range h.broken {
		if strings.HasPrefix(line, what) {
			return err
		}
	}
	h.trace = append(h.trace, fmt.Sprintf("%s %s", time.Since(h.begun), line))
	return nil
}

func (h *fakeHost) breaks(what string, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if err == nil {
		delete(h.broken, what)
	} else {
		h.broken[what] = err
	}
}

// first returns the index of the first step that contains text, or -1.
func (h *fakeHost) first(text string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.IndexFunc(h.trace, func(line string) bool { return strings.Contains(line, text) })
}

// lines returns the steps so far. It sorts steps of several components at the same time, because their order is random.
func (h *fakeHost) lines() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	at := func(line string) time.Duration {
		text, _, _ := strings.Cut(line, " ")
		d, _ := time.ParseDuration(text)
		return d
	}
	lines := slices.Clone(h.trace)
	slices.SortStableFunc(lines, func(a, b string) int {
		if at(a) != at(b) {
			return int(at(a) - at(b))
		}
		return strings.Compare(a, b)
	})
	return lines
}

func (h *fakeHost) Config() control.Config {
	h.mu.Lock()
	defer h.mu.Unlock()
	c := control.Config{
		Etcd: control.Etcd{Members: 3}, APIServer: control.APIServer{Replicas: 2, Encryption: control.EncryptionKMS, Authentication: control.AuthenticationOIDC},
		Scheduler: control.Scheduler{Replicas: 2}, ControllerManager: control.ControllerManager{Replicas: 2},
		Version: h.version,
	}
	for name, r := range h.moved {
		c = c.InRelease(name, r)
	}
	return c
}

func (h *fakeHost) ReleaseAvailable(_ context.Context, r control.Release) error {
	return h.failing("program of " + r.Minor)
}

func (h *fakeHost) LinkRelease(context.Context, control.Release) error { return nil }

func (h *fakeHost) Move(name string, to control.Release) error {
	if err := h.did("move %s to %s", name, to.Minor); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.moved == nil {
		h.moved = map[string]control.Release{}
	}
	h.moved[name] = to
	return nil
}

func (h *fakeHost) Available() error          { return nil }
func (h *fakeHost) NeighbourAvailable() error { return h.failing("neighbour available") }

// failing returns the error with which a step must fail. It does not record the step.
func (h *fakeHost) failing(what string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.broken[what]
}

func (h *fakeHost) Leader(_ context.Context, kind string) (string, error) {
	if kind == control.KindControllerManager && !h.elects.IsZero() && !time.Now().Before(h.elects) {
		return "kube-controller-manager-1", nil
	}
	if h.leaders[kind] == "" {
		return "no %s is the leader", fmt.Errorf("no %s leads now", kind)
	}
	return h.leaders[kind], nil
}

func (h *fakeHost) Signal(name string, signal os.Signal) error {
	return h.did("%s %s", map[os.Signal]string{syscall.SIGSTOP: "stop", syscall.SIGCONT: "continue"}[signal], name)
}

func (h *fakeHost) Kill(_ context.Context, name string) error { return h.did("kill %s", name) }

func (h *fakeHost) Stop(ctx context.Context, name string) error {
	if err := h.did("end %s", name); err != nil {
		return err
	}
	return pass(ctx, h.stopping)
}

func (h *fakeHost) Start(_ context.Context, name string, flags control.Flags) error {
	line := "start " + name
	for _, flag := range slices.Sorted(maps.Keys(flags)) {
		line += " " + flag + "=" + flags[flag]
	}
	return h.did("%s", line)
}

func (h *fakeHost) AwaitReady(ctx context.Context, name string) error {
	if err := pass(ctx, h.starting); err != nil || h.unready == nil {
		return err
	}
	return h.unready(name)
}

func (h *fakeHost) Rehearse(ctx context.Context) error {
	if err := h.did("restore from a snapshot"); err != nil {
		return err
	}
	return pass(ctx, h.stopping+h.starting)
}

func pass(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (h *fakeHost) SetLimit(name string, of Rlimit, soft uint64) (uint64, error) {
	if of == FileSize {
		return 1 << 40, h.did("limit %s of %s %d", of, name, soft)
	}
	return 65536, h.did("limit %s %d", name, soft)
}

func (h *fakeHost) SetBehaviour(_ context.Context, name string, b service.Behaviour) error {
	return h.did("behaviour of %s: %v %v", name, b.Delay, b.Fails)
}

func (h *fakeHost) RotateKey(_ context.Context, kind string) error { return h.did("rotate %s", kind) }

func (h *fakeHost) Fsync(name string) (Fsync, error) { return fakeFsync{h, name}, nil }

type fakeFsync struct {
	host *fakeHost
	name string
}

func (f fakeFsync) Set(_ context.Context, d fsync.Delay) error {
	return f.host.did("slow %s %s", f.name, d.Delay)
}
func (f fakeFsync) Clear(context.Context) error { return f.host.did("swift %s", f.name) }

func (h *fakeHost) Links() []Link {
	var all []Link
	for _, from := range []string{"kube-apiserver-0", "kube-apiserver-1", "etcd-0", "etcd-1", "etcd-2"} {
		for _, to := range []string{"etcd-0", "etcd-1", "etcd-2"} {
			if from != to {
				all = append(all, fakeLink{h, from, to})
			}
		}
	}
	return all
}

type fakeLink struct {
	host     *fakeHost
	from, to string
}

func (l fakeLink) From() string { return l.from }
func (l fakeLink) To() string   { return l.to }
func (l fakeLink) Delay(d, _ time.Duration, _ int64) {
	_ = l.host.did("delay %s %s %s", l.from, l.to, d)
}
func (l fakeLink) Cut()     { _ = l.host.did("cut %s %s", l.from, l.to) }
func (l fakeLink) Restore() { _ = l.host.did("restore %s %s", l.from, l.to) }

func (h *fakeHost) Neighbour(_ context.Context, writers int, size int64, lost func(error)) (func(context.Context) error, error) {
	h.lost = lost
	if err := h.did("neighbour %d %d", writers, size); err != nil {
		return nil, err
	}
	return func(context.Context) error { return h.did("neighbour gone") }, nil
}

func (h *fakeHost) Etcd(_ context.Context, member, path string, in, out any) error {
	ask, err := json.Marshal(in)
	if err != nil {
		return err
	}
	if err := h.did("%s %s %s", member, path, ask); err != nil {
		return err
	}
	if answer, ok := h.answers[path]; ok {
		return json.Unmarshal([]byte(answer), out)
	}
	return nil
}

func (h *fakeHost) Kubeconfig() string { return "admin.kubeconfig" }

// fakeWebhook is a fake API server and its only webhook.
type fakeWebhook struct{ host *fakeHost }

func (w fakeWebhook) start(_ context.Context, name string, f control.Fault) (registered, error) {
	return w, w.host.did("webhook %s on %s", name, f.Resource)
}

// errNotServed makes the fake API server report that it does not serve a resource.
var errNotServed = errors.New("not served")

func (w fakeWebhook) serves(_ context.Context, resource string) (bool, error) {
	err := w.host.failing("serves " + resource)
	if errors.Is(err, errNotServed) {
		return false, nil
	}
	return err == nil, err
}

func (w fakeWebhook) remove(_ context.Context, name string) (bool, error) {
	err := w.host.did("remove %s", name)
	return err == nil, nil
}

func (w fakeWebhook) Clear(context.Context) error { return w.host.did("webhook gone") }
func (w fakeWebhook) Close(context.Context) error { return nil }
func (w fakeWebhook) Lost() bool                  { return w.host.lostWebhook }

// fixture returns a manager of a fake host. It is closed at the end of the test.
func fixture(t *testing.T) (*Manager, *fakeHost) {
	t.Helper()
	h := newFakeHost()
	m := NewManager(h, &Events{})
	for _, kind := range []string{control.FaultSlowFsync, control.FaultDescriptors, control.FaultDiskFull} {
		refuse(m, kind, nil) // so that the tests run on any machine
	}
	m.webhooks = func(string) (webhooks, error) { return fakeWebhook{h}, nil }
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel() // ends faults that a test leaves active
		_ = m.Close(ctx)
	})
	return m, h
}

// refuse sets the error with which this machine refuses a kind of fault. Nil means that it accepts the fault.
func refuse(m *Manager, kind string, err error) {
	how := m.mechanisms[kind]
	how.lacks = onMachine(func() error { return err })
	m.mechanisms[kind] = how
}

// begin begins a fault, which must succeed.
func begin(t *testing.T, m *Manager, f control.Fault) control.FaultStatus {
	t.Helper()
	s, err := m.Begin(t.Context(), f)
	if err != nil {
		t.Fatalf("Begin of %s = %v, want nil", f.Kind, err)
	}
	return s
}

// inForce returns the IDs of faults that have not ended.
func inForce(m *Manager) []string {
	var ids []string
	for _, s := range m.List() {
		if s.Ended.IsZero() {
			ids = append(ids, s.ID)
		}
	}
	return ids
}

// told returns the events so far, without their times.
func told(m *Manager) []string {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var all []string
	events, _ := m.events.After(ctx, 0)
	for _, e := range events {
		all = append(all, fmt.Sprintf("%d %s %s: %s", e.Seq, e.Kind, e.Component, e.Detail))
	}
	return all
}

func same(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s =\n  %s\nwant:\n  %s", what, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}
