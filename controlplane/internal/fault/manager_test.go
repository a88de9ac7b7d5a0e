package fault

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

func pauseOf(name string, d time.Duration) control.Fault {
	return control.Fault{Kind: control.FaultPause, Components: []string{name}, For: d}
}

func killOf(name string, d time.Duration) control.Fault {
	return control.Fault{Kind: control.FaultKill, Components: []string{name}, For: d}
}

func slowOf(name string, d time.Duration) control.Fault {
	return control.Fault{Kind: control.FaultSlowFsync, Components: []string{name}, Delay: 25 * time.Millisecond, For: d}
}

// A fault of each kind ends exactly when its duration is over, although the client's context has ended long before.
func TestEachKindEndsByItself(t *testing.T) {
	tests := []struct {
		fault control.Fault
		on    string
		want  []string
	}{
		{pauseOf("etcd-0", 30*time.Second), "etcd-0", []string{"0s stop etcd-0", "30s continue etcd-0"}},
		{killOf("kube-scheduler-leader", time.Second), "kube-scheduler-0", []string{"0s kill kube-scheduler-0", "1s start kube-scheduler-0"}},
		{slowOf("etcd", time.Minute), "etcd-0 etcd-1 etcd-2", []string{
			"0s slow etcd-0 25ms", "0s slow etcd-1 25ms", "0s slow etcd-2 25ms", "1m0s swift etcd-0", "1m0s swift etcd-1", "1m0s swift etcd-2",
		}},
		{control.Fault{Kind: control.FaultDiskContention, For: time.Second}, "", []string{"0s neighbour 0 0", "1s neighbour gone"}},
		{
			control.Fault{Kind: control.FaultNetworkDelay, Components: []string{"etcd-leader"}, Peers: []string{"etcd-0"}, Delay: time.Millisecond, For: time.Second}, "etcd-1",
			[]string{"0s delay etcd-0 etcd-1 1ms", "0s delay etcd-1 etcd-0 1ms", "1s restore etcd-0 etcd-1", "1s restore etcd-1 etcd-0"},
		},
		{
			control.Fault{Kind: control.FaultPartition, Components: []string{"kube-apiserver-1"}, For: time.Second}, "kube-apiserver-1",
			[]string{
				"0s cut kube-apiserver-1 etcd-0", "0s cut kube-apiserver-1 etcd-1", "0s cut kube-apiserver-1 etcd-2",
				"1s restore kube-apiserver-1 etcd-0", "1s restore kube-apiserver-1 etcd-1", "1s restore kube-apiserver-1 etcd-2",
			},
		},
		{
			control.Fault{Kind: control.FaultDescriptors, Components: []string{"kube-apiserver-0"}, Limit: 1024, For: time.Second}, "kube-apiserver-0",
			[]string{"0s limit kube-apiserver-0 1024", "1s limit kube-apiserver-0 65536"},
		},
		{
			control.Fault{Kind: control.FaultDiskFull, Components: []string{"kube-apiserver-0"}, For: time.Second}, "kube-apiserver-0",
			[]string{"0s limit a file's size of kube-apiserver-0 0", "1s limit a file's size of kube-apiserver-0 1099511627776"},
		},
		{
			control.Fault{Kind: control.FaultWebhook, Resource: "pods", Fails: true, For: time.Second}, "",
			[]string{"0s webhook stormglass-fault-1-pods on pods", "1s webhook gone"},
		},
	}
	for _, test := range tests {
		t.Run(test.fault.Kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, h := fixture(t)
				asked := time.Now()
				ctx, gone := context.WithCancel(t.Context())
				status, err := m.Begin(ctx, test.fault)
				gone()
				if err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(status.On, " "); got != test.on {
					t.Errorf("the fault affects %q, want %q", got, test.on)
				}
				if !status.Active.Equal(asked) || !status.Ends.Equal(asked.Add(test.fault.For)) || !status.Ended.IsZero() {
					t.Errorf("asked %v, active %v, ends %v, ended %v", asked, status.Active, status.Ends, status.Ended)
				}
				time.Sleep(test.fault.For - 1)
				synctest.Wait()
				if m.List()[0].Ended != (time.Time{}) {
					t.Error("the fault ended before its duration was over")
				}
				time.Sleep(time.Nanosecond)
				synctest.Wait()
				if got := m.List()[0].Ended; !got.Equal(status.Ends) {
					t.Errorf("the fault ended at %v, want %v", got, status.Ends)
				}
				same(t, "what was done", h.lines(), test.want...)
			})
		})
	}
}

func TestClearEndsAFaultBeforeItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		begin(t, m, pauseOf("etcd-0", time.Minute))
		forever := begin(t, m, pauseOf("etcd-1", 0))
		if !forever.Ends.IsZero() {
			t.Errorf("a fault without a length is due to end at %v", forever.Ends)
		}
		time.Sleep(10 * time.Second)
		cleared, err := m.Clear(t.Context(), "1")
		if err != nil || !cleared.Ended.Equal(cleared.Active.Add(10*time.Second)) {
			t.Errorf("Clear = %+v, %v; want an end after 10s", cleared, err)
		}
		again, err := m.Clear(t.Context(), "1")
		if err != nil || !again.Ended.Equal(cleared.Ended) {
			t.Errorf("second Clear = %+v, %v; want the result of the first", again, err)
		}
		time.Sleep(time.Hour)
		all, err := m.ClearAll(t.Context())
		if err != nil || len(all) != 1 || all[0].ID != "2" || all[0].Ended.IsZero() {
			t.Errorf("ClearAll = %+v, %v; want fault 2", all, err)
		}
		if _, err := m.Clear(t.Context(), "7"); !errors.Is(err, ErrNotFound) {
			t.Errorf("Clear of an unknown ID = %v, want ErrNotFound", err)
		}
		same(t, "what was done", h.lines(), "0s stop etcd-0", "0s stop etcd-1", "10s continue etcd-0", "1h0m10s continue etcd-1")
		same(t, "events", told(m),
			"1 fault-begin etcd-0: fault 1: pause of etcd-0", "2 fault-begin etcd-1: fault 2: pause of etcd-1",
			"3 fault-end etcd-0: fault 1: pause of etcd-0", "4 fault-end etcd-1: fault 2: pause of etcd-1")
	})
}

func TestShutdownUndoesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		begin(t, m, pauseOf("etcd-0", time.Hour))
		begin(t, m, control.Fault{Kind: control.FaultWebhook, Resource: "pods", Fails: true})
		begin(t, m, killOf("kube-apiserver", 0))
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		same(t, "what was done", h.lines(),
			"0s continue etcd-0", "0s kill kube-apiserver-0", "0s kill kube-apiserver-1",
			"0s start kube-apiserver-0", "0s start kube-apiserver-1", "0s stop etcd-0", "0s webhook gone", "0s webhook stormglass-fault-2-pods on pods")
		if trace := h.trace; trace[len(trace)-1] != "0s webhook gone" {
			t.Errorf("the webhook was not removed last, when an API server serves again: %q", trace)
		}
		if _, err := m.Begin(t.Context(), pauseOf("etcd-0", 0)); !errors.Is(err, errClosed) {
			t.Errorf("Begin after Close = %v, want errClosed", err)
		}
		if left := inForce(m); len(left) > 0 {
			t.Errorf("faults that have not ended: %v", left)
		}
	})
}

// beginSlowQuota begins an etcdQuota on members that take 2 s to start, and returns immediately. The channel receives
// the error of Begin.
func beginSlowQuota(t *testing.T) (*Manager, <-chan error) {
	t.Helper()
	m, h := fixture(t)
	h.starting = 2 * time.Second
	begun := make(chan error, 1)
	go func() {
		_, err := m.Begin(t.Context(), control.Fault{Kind: control.FaultQuota, Quota: 16 << 20})
		begun <- err
	}()
	return m, begun
}

func TestShutdownCancelsBegin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, begun := beginSlowQuota(t)
		time.Sleep(time.Second)
		if err := m.Close(t.Context()); err != nil {
			t.Errorf("Close = %v, want nil", err)
		}
		if err := <-begun; !errors.Is(err, errClosed) {
			t.Errorf("Begin = %v, want errClosed", err)
		}
		if left := inForce(m); len(left) > 0 {
			t.Errorf("faults that have not ended: %v", left)
		}
	})
}

// An active fault applies again to a component that ended by itself and was restarted.
func TestFaultIsRenewedInNewProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		begin(t, m, slowOf("etcd", time.Minute))
		begin(t, m, control.Fault{Kind: control.FaultDescriptors, Components: []string{"etcd-0"}, Limit: 100, For: 2 * time.Minute})
		time.Sleep(10 * time.Second)
		m.Renew(t.Context(), "etcd-0")
		h.breaks("slow etcd-1", errors.New("no agent"))
		m.Renew(t.Context(), "etcd-1")
		time.Sleep(time.Hour)
		synctest.Wait()
		m.Renew(t.Context(), "etcd-0") // no fault is active any more
		same(t, "what was done", h.lines(),
			"0s limit etcd-0 100", "0s slow etcd-0 25ms", "0s slow etcd-1 25ms", "0s slow etcd-2 25ms",
			"10s limit etcd-0 100", "10s slow etcd-0 25ms",
			"1m0s swift etcd-0", "1m0s swift etcd-1", "1m0s swift etcd-2", "2m0s limit etcd-0 65536")
		if s := m.List()[0]; s.Lost != "cannot apply the fault to the new process of etcd-1: no agent" || s.Error != "" || s.Ended.IsZero() {
			t.Errorf("status = %+v, want an ended fault with the reason in Lost", s)
		}
		if events := told(m); len(events) != 7 || !strings.HasSuffix(events[4], "slowFsync of etcd-0, etcd-1, etcd-2 is lost: cannot apply the fault to the new process of etcd-1: no agent") {
			t.Errorf("events = %q, want the lost fault as the fifth of seven", events)
		}
	})
}

// If the faults cannot be undone in time, Close returns an error at its deadline.
func TestShutdownIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		begin(t, m, control.Fault{Kind: control.FaultQuota, Quota: 16 << 20})
		h.starting = time.Hour
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		before := time.Now()
		err := m.Close(ctx)
		if took := time.Since(before); took != 10*time.Second || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Close took %v and returned %v", took, err)
		}
	})
}

func TestFailedUndoIsReportedAndRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		begin(t, m, killOf("etcd-0", time.Second))
		h.breaks("start etcd-0", errors.New("the port is taken"))
		time.Sleep(time.Minute)
		s := m.List()[0]
		if s.Error != "the port is taken" || !s.Ended.IsZero() {
			t.Errorf("status = %+v, want the error of undoing", s)
		}
		var busy *BusyError
		if _, err := m.Begin(t.Context(), pauseOf("etcd-0", 0)); !errors.As(err, &busy) || !strings.Contains(err.Error(), "could not be undone") {
			t.Errorf("Begin on a component of a fault that could not be undone = %v, want a BusyError", err)
		}
		if _, err := m.Clear(t.Context(), "1"); err == nil || !strings.Contains(err.Error(), "the port is taken") {
			t.Errorf("Clear = %v, want the error of undoing", err)
		}
		h.breaks("start etcd-0", nil)
		if s, err := m.Clear(t.Context(), "1"); err != nil || s.Ended.IsZero() || s.Error != "" {
			t.Errorf("Clear after the cause was fixed = %+v, %v; want an ended fault", s, err)
		}
		same(t, "events", told(m),
			"1 fault-begin etcd-0: fault 1: kill of etcd-0",
			"2 fault-end etcd-0: fault 1: kill of etcd-0 could not be undone: the port is taken",
			"3 fault-end etcd-0: fault 1: kill of etcd-0 could not be undone: the port is taken",
			"4 fault-end etcd-0: fault 1: kill of etcd-0")
	})
}

// A fault on several components is active on all of them or on none.
func TestFailedBeginIsUndoneOnAllComponents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.breaks("stop etcd-2", errors.New("no such process"))
		_, err := m.Begin(t.Context(), pauseOf("etcd", time.Minute))
		if err == nil || err.Error() != "pause cannot begin: no such process" {
			t.Errorf("Begin = %v, want the error of the step", err)
		}
		same(t, "what was done", h.lines(),
			"0s continue etcd-0", "0s continue etcd-1", "0s continue etcd-2", "0s stop etcd-0", "0s stop etcd-1")
		if len(m.List()) != 0 || len(told(m)) != 0 {
			t.Errorf("faults %v and events %v after a failed Begin, want none", m.List(), told(m))
		}
		h.breaks("stop etcd-2", nil)
		begin(t, m, pauseOf("etcd-0", 0)) // the failed fault claims nothing any more

		h.breaks("stop etcd-2", errors.New("no such process"))
		h.breaks("continue etcd-1", errors.New("not permitted"))
		_, err = m.Begin(t.Context(), control.Fault{Kind: control.FaultPause, Components: []string{"etcd-1", "etcd-2"}})
		if err == nil || !strings.Contains(err.Error(), "to try again: controlplane fault clear 3") {
			t.Errorf("Begin with a failed rollback = %v, want the command to try again", err)
		}
		h.breaks("continue etcd-1", nil)
		if _, err := m.Clear(t.Context(), "3"); err != nil {
			t.Errorf("Clear = %v, want nil", err)
		}
	})
}

// Each kind of fault of a plane has a mechanism, and no other kind has one.
func TestEachKindHasAMechanism(t *testing.T) {
	all := mechanisms()
	for _, kind := range control.FaultKinds() {
		if all[kind].begin == nil {
			t.Errorf("fault kind %s has no function begin", kind)
		}
		delete(all, kind)
	}
	for kind := range all {
		t.Errorf("%s has a mechanism, but is not a kind of fault of a plane", kind)
	}
}
