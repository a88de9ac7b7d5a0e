package fault

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// dial serves the manager on the control socket of a directory, and returns a client for it.
func dial(t *testing.T, m *Manager) *control.Client {
	t.Helper()
	dir, err := os.MkdirTemp("", "fault-") // the path of t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	lock, err := control.LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lock.Close() })
	socket := filepath.Join(dir, control.SocketFile)
	if err := control.SetHolder(lock, control.Holder{PID: os.Getpid(), Socket: socket}); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	Handle(mux, m, m.events)
	server := http.Server{Handler: mux}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Close()
		<-served
	})
	client, err := control.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestClientBeginsAndEndsFaults(t *testing.T) {
	m, h := fixture(t)
	client := dial(t, m)
	ctx := t.Context()
	want := slowOf("etcd-0", time.Hour)
	if err := client.Check(ctx, want); err != nil {
		t.Errorf("Check = %v, want nil", err)
	}
	begun, err := client.Begin(ctx, want)
	if err != nil || begun.ID != "1" || begun.Delay != want.Delay || begun.Ends.Sub(begun.Active) != time.Hour {
		t.Fatalf("Begin = %+v, %v; want fault 1 for an hour", begun, err)
	}
	if list, err := client.Faults(ctx); err != nil || len(list) != 1 || list[0].ID != "1" || !list[0].Ended.IsZero() {
		t.Errorf("Faults = %+v, %v; want fault 1 only", list, err)
	}
	if cleared, err := client.Clear(ctx, "1"); err != nil || cleared.Ended.IsZero() {
		t.Errorf("Clear = %+v, %v; want an ended fault", cleared, err)
	}
	if _, err := client.Begin(ctx, pauseOf("etcd-1", 0)); err != nil {
		t.Error(err)
	}
	if all, err := client.ClearAll(ctx); err != nil || len(all) != 1 || all[0].ID != "2" {
		t.Errorf("ClearAll = %+v, %v; want fault 2 only", all, err)
	}
	events, err := client.Events(ctx, 1)
	if err != nil || len(events) != 3 || events[0].Seq != 2 || events[0].Kind != control.EventFaultEnd {
		t.Errorf("events after the first = %+v, %v; want three, the end of fault 1 first", events, err)
	}
	if trace := h.lines(); len(trace) != 4 {
		t.Errorf("steps = %v, want four", trace)
	}
}

func TestClientReturnsNewEvents(t *testing.T) {
	m, _ := fixture(t)
	client := dial(t, m)
	heard := make(chan []control.Event)
	go func() {
		events, err := client.Events(t.Context(), 0)
		if err != nil {
			t.Errorf("Events = %v, want nil", err)
		}
		heard <- events
	}()
	m.events.Append(control.Event{Kind: control.EventLease, Component: "kube-scheduler-1"}) // the client receives it, whether it comes before or after the request
	if events := <-heard; len(events) != 1 || events[0].Component != "kube-scheduler-1" {
		t.Errorf("received events = %+v, want one of kube-scheduler-1", events)
	}
}

// A client that follows the events can distinguish the end of the plane from the loss of its supervisor.
func TestClientReturnsEndOfEvents(t *testing.T) {
	m, _ := fixture(t)
	client := dial(t, m)
	m.events.Append(control.Event{Kind: control.EventExit, Component: "etcd-0"})
	m.events.Close()
	if events, err := client.Events(t.Context(), 0); err != nil || len(events) != 1 {
		t.Errorf("events before the end = %+v, %v; want one", events, err)
	}
	if events, err := client.Events(t.Context(), 1); !errors.Is(err, control.ErrEnded) {
		t.Errorf("events after the end = %+v, %v; want ErrEnded", events, err)
	}
}

func TestClientReturnsRefusals(t *testing.T) {
	m, h := fixture(t)
	h.breaks("kill etcd-1", errors.New("operation not permitted"))
	client := dial(t, m)
	ctx := t.Context()
	if _, err := client.Begin(ctx, pauseOf("etcd-0", time.Hour)); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		fault   control.Fault
		invalid bool
		want    string
	}{
		{pauseOf("etcd-0", 0), false, "pause cannot begin: the process of etcd-0 is already used by fault 1, pause, for another "},
		{pauseOf("etcd-9", 0), true, "components: there is no etcd-9 (there is etcd-0 to etcd-2)"},
		{killOf("etcd-1", 0), false, "kill cannot begin: operation not permitted"},
		{control.Fault{Kind: "earthquake"}, true, `kind: unknown kind of fault "earthquake" (slowFsync, `},
	}
	for _, test := range tests {
		_, err := client.Begin(ctx, test.fault)
		if err == nil || !strings.HasPrefix(err.Error(), test.want) {
			t.Errorf("Begin = %v\nwant %s", err, test.want)
		}
		var invalid *control.InvalidFault
		if errors.As(err, &invalid) != test.invalid {
			t.Errorf("Begin = %v; is it an InvalidFault? want %v", err, test.invalid)
		}
	}
	if _, err := client.Clear(ctx, "../status"); err == nil || err.Error() != `fault "../status": no fault has this ID` {
		t.Errorf("Clear of an invalid ID = %v, want an error about the ID", err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := client.Faults(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("Faults with a canceled context = %v, want context.Canceled", err)
	}
}
