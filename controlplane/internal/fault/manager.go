package fault

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

const endedKept = 1000

// Manager begins and ends the faults of one plane. Its methods are safe for concurrent use.
type Manager struct {
	host   Host
	events *Events
	// mechanisms holds the mechanism of each kind of fault. webhooks returns a client that registers webhooks with the
	// API server.
	mechanisms map[string]mechanism
	webhooks   func(kubeconfig string) (webhooks, error)

	open  context.Context // ends when the manager permanently refuses new faults
	shut  context.CancelFunc
	life  context.Context // ends when the manager no longer undoes faults
	leave context.CancelFunc

	mu       sync.Mutex
	faults   []*active // in the order in which clients requested them
	lastID   int64
	excluded string         // reason why no fault may begin for now; "" means that faults may begin
	running  sync.WaitGroup // the faults that are beginning or active, and the goroutines that they have started
}

// ErrNotFound is the error for an unknown fault ID.
var ErrNotFound = errors.New("no fault has this ID")

// errClosed is the error of Begin after Close, and the cancellation cause of faults that begin during Close.
var errClosed = errors.New("the control plane is stopping")

// errCleared is the cancellation cause of a fault that is cleared while it begins.
var errCleared = errors.New("the fault was cleared")

// NewManager returns a manager for the faults of host. The manager appends the events of the faults to events.
func NewManager(host Host, events *Events) *Manager {
	m := &Manager{host: host, events: events, mechanisms: mechanisms(), webhooks: apiServer}
	m.open, m.shut = context.WithCancel(context.Background())
	m.life, m.leave = context.WithCancel(context.Background())
	return m
}

// Check returns an error if Begin would refuse the fault now. It changes nothing. Like Begin, it waits for an election
// in progress.
func (m *Manager) Check(ctx context.Context, f control.Fault) error {
	if err := m.checkPossible(ctx, f); err != nil {
		return err
	}
	leaders, err := m.elected(ctx, f)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, err = m.aim(f, leaders)
	return err
}

// Begin begins a fault and returns when the fault is active. The fault ends by itself when its duration is over. If the
// fault is on a leader, Begin first waits for an election in progress. If ctx ends, or a step fails, Begin undoes its
// changes and the fault does not begin. The error is a *control.InvalidFault if the plane does not support the fault,
// and a *BusyError if the fault clashes with another fault.
func (m *Manager) Begin(ctx context.Context, f control.Fault) (control.FaultStatus, error) {
	asked := time.Now()
	if err := m.checkPossible(ctx, f); err != nil {
		return control.FaultStatus{}, err
	}
	leaders, err := m.elected(ctx, f)
	if err != nil {
		return control.FaultStatus{}, err
	}
	ctx, abandon := context.WithCancelCause(ctx)
	defer abandon(nil)
	defer context.AfterFunc(m.open, func() { abandon(errClosed) })()
	a, t, err := m.reserve(f, leaders, asked, abandon)
	if err != nil {
		return control.FaultStatus{}, err
	}
	if a.effect, err = m.mechanisms[f.Kind].begin(m, ctx, a.status.ID, f, t); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause // the cause explains more than the error that it led to
		}
		return m.rollback(a, fmt.Errorf("%s cannot begin: %w", f.Kind, err))
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	a.status.Active = time.Now()
	if f.For > 0 {
		a.status.Ends = a.status.Active.Add(f.For)
	}
	m.publish(control.EventFaultBegin, a.status.Active, a.status, describe(a.status))
	go m.keep(a, a.status.Ends)
	return a.status, nil
}

// reserve determines the parts of the plane that the fault uses, claims these parts, and adds the fault to the list.
func (m *Manager) reserve(f control.Fault, leaders map[string]string, asked time.Time, abandon context.CancelCauseFunc) (*active, target, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, err := m.aim(f, leaders)
	if err != nil {
		return nil, t, err
	}
	m.lastID++
	a := &active{
		status: control.FaultStatus{ID: strconv.FormatInt(m.lastID, 10), Fault: f, On: t.names, Asked: asked},
		claims: t.claims, abandon: abandon, clear: make(chan chan error), gone: make(chan struct{}),
	}
	m.dropOldest()
	m.faults = append(m.faults, a)
	m.running.Add(1)
	return a, t, nil
}

func (m *Manager) dropOldest() {
	if len(m.faults) < endedKept {
		return
	}
	if i := slices.IndexFunc(m.faults, func(a *active) bool { return !a.status.Ended.IsZero() }); i >= 0 {
		m.faults = slices.Delete(m.faults, i, i+1)
	}
}

// List returns the faults in the order of their requests: all faults that are beginning or active, and the most recent
// faults that have ended. Beyond a thousand faults, the manager drops the oldest ended faults.
func (m *Manager) List() []control.FaultStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]control.FaultStatus, 0, len(m.faults))
	for _, a := range m.faults {
		list = append(list, a.status)
	}
	return list
}

// Clear ends one fault and returns when the fault is undone. It succeeds for a fault that has already ended. It returns
// ErrNotFound for an unknown ID, an error if the fault cannot be undone, or the error of ctx if ctx ends first.
func (m *Manager) Clear(ctx context.Context, id string) (control.FaultStatus, error) {
	m.mu.Lock()
	i := slices.IndexFunc(m.faults, func(a *active) bool { return a.status.ID == id })
	if i < 0 {
		m.mu.Unlock()
		return control.FaultStatus{}, fmt.Errorf("fault %q: %w", id, ErrNotFound)
	}
	a := m.faults[i]
	m.mu.Unlock()
	err := a.end(ctx, errCleared)
	m.mu.Lock()
	defer m.mu.Unlock()
	return a.status, err
}

// ClearAll ends all faults, waits until they are undone, and returns them. It undoes last the faults that require a
// serving plane.
func (m *Manager) ClearAll(ctx context.Context) ([]control.FaultStatus, error) {
	return m.endAll(ctx, errCleared)
}

// endAll ends all faults. A call of Begin that is in progress returns `cause`.
func (m *Manager) endAll(ctx context.Context, cause error) ([]control.FaultStatus, error) {
	m.mu.Lock()
	var first, last []*active
	for _, a := range m.faults {
		switch {
		case !a.status.Ended.IsZero():
		case m.mechanisms[a.status.Kind].last:
			last = append(last, a)
		default:
			first = append(first, a)
		}
	}
	m.mu.Unlock()
	end := func(a *active) error { return a.end(ctx, cause) }
	err := errors.Join(each(first, end), each(last, end))
	m.mu.Lock()
	defer m.mu.Unlock()
	list := make([]control.FaultStatus, 0, len(first)+len(last))
	for _, a := range slices.Concat(first, last) {
		list = append(list, a.status)
	}
	return list, err
}

// Exclude refuses new faults until the caller calls `release`. It protects operations that no fault may disturb. `why`
// is the error message for the refused faults. Exclude fails if faults are beginning or active.
func (m *Manager) Exclude(why string) (release func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var open []string
	for _, a := range m.faults {
		if a.status.Ended.IsZero() {
			open = append(open, fmt.Sprintf("%s (fault %s)", describe(a.status), a.status.ID))
		}
	}
	switch {
	case len(open) > 0:
		return nil, fmt.Errorf("faults are active: %s (end them first: controlplane fault clear)", strings.Join(open, ", "))
	case m.excluded != "":
		return nil, errors.New(m.excluded)
	}
	m.excluded = why
	return sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.excluded = ""
	}), nil
}

// Close permanently refuses new faults and undoes all existing ones. It returns the errors of faults that could not be
// undone before ctx ends. Call Close before you stop the plane's processes, because a paused process cannot stop.
func (m *Manager) Close(ctx context.Context) error {
	m.mu.Lock()
	m.shut()
	m.mu.Unlock()
	_, err := m.endAll(ctx, errClosed)
	m.leave()
	m.running.Wait()
	return err
}
