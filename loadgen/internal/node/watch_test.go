package node

import (
	"net/url"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/internal/samples"
)

// queries returns the queries of all pod watches so far. The caller holds the lock.
func (s *stub) queries() []url.Values {
	var out []url.Values
	for _, r := range s.seen("GET", "/pods") {
		q, err := url.ParseQuery(r.query)
		if err != nil {
			s.t.Error(err)
		}
		out = append(out, q)
	}
	return out
}

func TestWatchIsResumedByResourceVersion(t *testing.T) {
	s, f := started(t, nil)
	p := s.bind("sg-0", "a", nil)
	s.await("it is Ready", func() bool { return isReady(s.pods["a"]) })
	var first *corev1.Pod
	s.locked(func() { first = s.pods["a"] })
	s.await("and watched", func() bool { return len(s.open("pods")) == 1 })
	s.changePod("a", func(*corev1.Pod) {}) // the last event before the end
	var last string
	var old *stubWatch
	s.locked(func() {
		last, old = s.pods["a"].ResourceVersion, s.open("pods")[0]
	})
	s.await("it was sent", func() bool { return len(old.events) == 0 })
	close(old.kill)
	s.await("the watch is opened again", func() bool { return len(s.queries()) == 2 })
	var q []url.Values
	s.locked(func() {
		q = s.queries()
	})
	if q[0].Get("sendInitialEvents") != "true" || q[0].Get("resourceVersionMatch") != "NotOlderThan" || q[0].Get("fieldSelector") != "spec.nodeName=sg-0" {
		t.Errorf("query of the first watch = %v", q[0])
	}
	if q[1].Get("resourceVersion") != last || q[1].Has("sendInitialEvents") {
		t.Errorf("the watch resumed with %v, want resourceVersion %s", q[1], last)
	}
	if r := f.Results(); r.Reconnects != 1 || r.Relists != 0 {
		t.Errorf("%d reconnects, %d relists", r.Reconnects, r.Relists)
	}
	if p.UID != first.UID {
		t.Error("the node replaced the pod")
	}
}

func TestExpiredWatchRelistsAndFindsWhatIsGone(t *testing.T) {
	s, f := started(t, nil)
	s.bind("sg-0", "stays", nil)
	s.bind("sg-0", "vanishes", nil)
	eventually(t, "both run", func() bool { return f.Live().PodsRunning == 2 })
	s.update(func() { // behind the watch's back
		delete(s.pods, "vanishes")
		for _, w := range s.open("pods") {
			w.events <- frame("ERROR", "Status", &metav1.Status{Status: "Failure", Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old"})
		}
	})
	eventually(t, "the pod that vanished is let go", func() bool { return f.Live().PodsRunning == 1 })
	if r := f.Results(); r.Relists != 1 || r.PodsStopped != 1 {
		t.Errorf("got %d relists and %d stopped pods", r.Relists, r.PodsStopped)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.seen("PATCH", "/pods/stays/status")); n != 2 { // creating, running
		t.Errorf("the node sent %d writes to the remaining pod", n)
	}
	if q := s.queries(); q[len(q)-1].Get("sendInitialEvents") != "true" {
		t.Errorf("the watch listed again with %v, want sendInitialEvents", q[len(q)-1])
	}
}

func TestBrokenConnectionIsReplaced(t *testing.T) {
	s, f := started(t, nil)
	// Wait until the node itself sees all watches: the stub holds a watch before the node has read the response, and a
	// watch that breaks unanswered cannot be resumed. The pod comes after that, so that its event is read after the
	// listing's end: a watch that breaks earlier starts over, and finds what it missed by itself.
	eventually(t, "all is watched", func() bool { return f.Live().Watches == 6 })
	s.bind("sg-0", "a", nil)
	eventually(t, "it runs", func() bool { return f.Live().PodsRunning == 1 })
	s.server.CloseClientConnections()
	s.await("the watches are gone", func() bool { return len(s.watches) == 0 })
	s.deletePod("a")
	s.await("they are opened again", func() bool { return len(s.watches) == 6 })
	s.locked(func() {
		for _, w := range s.open("pods") { // what a real watch cache would replay
			w.events <- frame("MODIFIED", "Pod", s.pods["a"])
		}
	})
	s.await("the pod deleted in the meantime is gone", func() bool { return s.pods["a"] == nil })
	if r := f.Results(); r.Reconnects != 6 || r.Relists != 0 {
		t.Errorf("%d reconnects, %d relists", r.Reconnects, r.Relists)
	}
}

// A lost connection breaks its watches. An expired version makes a watch list again; that also counts as a break.
func TestSamplesCountBreaksAndRelists(t *testing.T) {
	dir := t.TempDir()
	recorder, err := samples.Open(dir, nil)
	must(t, err)
	s, f := started(t, func(c *Config) { c.Samples = recorder })
	eventually(t, "all is watched", func() bool { return f.Live().Watches == 6 })
	s.bind("sg-0", "a", nil)
	eventually(t, "it runs", func() bool { return f.Live().PodsRunning == 1 })
	s.server.CloseClientConnections()
	eventually(t, "all is watched again", func() bool { return f.Results().Reconnects == 6 && f.Live().Watches == 6 })
	s.update(func() {
		for _, w := range s.open("pods") {
			w.events <- frame("ERROR", "Status", &metav1.Status{Status: "Failure", Code: 410, Reason: metav1.StatusReasonExpired, Message: "too old"})
		}
	})
	eventually(t, "pods are listed again", func() bool { return f.Results().Relists == 1 && f.Live().Watches == 6 })
	f.Stop(t.Context())
	must(t, recorder.Close())
	slots, err := samples.Read(dir)
	must(t, err)
	var sum samples.StreamSlot
	for _, slot := range slots {
		sum.Breaks += slot.Streams[samples.Nodes].Breaks
		sum.Relists += slot.Streams[samples.Nodes].Relists
	}
	if sum.Breaks != 7 || sum.Relists != 1 {
		t.Errorf("%d breaks and %d relists, want 7 and 1", sum.Breaks, sum.Relists)
	}
}

func TestServerWithoutWatchListIsListedFirst(t *testing.T) {
	s := newStub(t)
	s.noWatchList = true
	s.bind("sg-0", "a", nil)
	f := s.fleet(1, nil)
	must(t, f.Start(t.Context()))
	s.await("the listed pod is Ready", func() bool { return isReady(s.pods["a"]) })
	s.await("and watched", func() bool { return len(s.open("pods")) == 1 })
	s.mu.Lock()
	defer s.mu.Unlock()
	q := s.queries()
	if last := q[len(q)-1]; last.Get("watch") != "true" || last.Get("resourceVersion") == "" || last.Has("sendInitialEvents") {
		t.Errorf("the watch had the query %v", last)
	}
}
