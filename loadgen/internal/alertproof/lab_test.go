package alertproof

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

var (
	fsyncEdges   = []float64{0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064}
	requestEdges = []float64{0.05, 0.1, 0.25, 0.5, 1}
)

// scraped is the interval between scrapes.
const scraped = 5 * time.Second

// recordRun simulates the phases of a scenario. Before each scrape, it calls `each` with the phase's name and the time
// since the phase's start, to set the counts of the last 5 s. A phase with a condition lasts 10 s.
func recordRun(t *testing.T, p Proof, o scrape.Options, each func(l *archivetest.Lab, phase string, at time.Duration)) *rundir.Recorded {
	t.Helper()
	s, err := p.Read()
	if err != nil {
		t.Fatal(err)
	}
	parts := []string{"kube-apiserver-0", "kube-scheduler-0", "kube-controller-manager-0", "loadgen"}
	for i := range max(1, s.ControlPlane.Etcd.Members) {
		parts = append(parts, fmt.Sprintf("etcd-%d", i))
	}
	l := archivetest.New(t, o, parts...)
	for _, c := range l.Parts {
		c.Add("process_max_fds", 1000)
	}
	in := &rundir.Recorded{Scenario: &scenario.Scenario{Record: scenario.Record{Interval: scenario.Duration(scraped), Drop: o.Drop}}}
	start := l.Boundary(time.Second)
	in.Run.Started = start
	for _, x := range s.Phases {
		phase := result.Phase{Name: x.Name, Start: l.Boundary(time.Second)}
		in.Timeline = append(in.Timeline, faults(x, phase.Start)...)
		length := x.For.D()
		if length == 0 {
			length = 10 * time.Second
		}
		for at := scraped; at <= length; at += scraped {
			healthy(l)
			each(l, x.Name, at)
			phase.End = l.Boundary(scraped)
		}
		in.Measurements.Phases = append(in.Measurements.Phases, phase)
	}
	in.Archive = l.Archive()
	return in
}

// faults returns the events of a phase's faults.
func faults(p scenario.Phase, start time.Time) []result.Event {
	var all []result.Event
	for i, f := range p.Faults {
		for n, after := range f.Times() {
			id := fmt.Sprint(p.Name, i, n)
			begin := start.Add(after)
			if f.OfNodes() {
				all = append(all, result.Event{Time: begin, Kind: "fault", Name: f.Kind})
				continue
			}
			all = append(all, result.Event{Time: begin, Kind: control.EventFaultBegin, Name: f.Kind, Fault: id, On: f.On()},
				result.Event{Time: begin.Add(f.For.D()), Kind: control.EventFaultEnd, Name: f.Kind, Fault: id})
		}
	}
	return all
}

// healthy adds the counts of a healthy plane for 5 s, except the counts that tests add themselves.
func healthy(l *archivetest.Lab) {
	for name, c := range l.Parts {
		c.Add("process_cpu_seconds_total", 1)
		switch job := strings.TrimRight(name, "-0123456789"); job {
		case control.KindEtcd:
			c.Observe("etcd_disk_backend_commit_duration_seconds", "", fsyncEdges, 0.003, 20)
		case control.KindAPIServer:
			c.Observe("apiserver_request_duration_seconds", `verb="PATCH",scope="resource",subresource=""`, []float64{0.1, 1, 30}, 0.02, 100)
		case control.KindScheduler:
			c.Add(`scheduler_pending_pods{queue="active"}`, 0)
		case control.KindControllerManager:
			c.Add(`workqueue_depth{name="deployment"}`, 0)
		}
	}
}

// fsync adds 50 fsyncs of v seconds to each etcd member.
func fsync(l *archivetest.Lab, v float64) {
	for name, c := range l.Parts {
		if strings.HasPrefix(name, "etcd") {
			c.Observe("etcd_disk_wal_fsync_duration_seconds", "", fsyncEdges, v, 50)
		}
	}
}
