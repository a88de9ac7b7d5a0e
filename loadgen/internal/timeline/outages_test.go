package timeline

import (
	"slices"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

var zero = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func at(s float64) time.Time { return zero.Add(time.Duration(s * float64(time.Second))) }

func begin(s float64, kind string, on ...string) result.Event {
	return result.Event{Time: at(s), Kind: result.EventFaultBegin, Name: kind, Fault: "1", On: on}
}

func end(s float64) result.Event {
	return result.Event{Time: at(s), Kind: result.EventFaultEnd, Fault: "1"}
}

func event(s float64, kind result.EventKind, name string) result.Event {
	return result.Event{Time: at(s), Kind: kind, Name: name}
}

// asked returns the exit of a process that the supervisor requested.
func asked(s float64, name string) result.Event {
	return result.Event{Time: at(s), Kind: result.EventExit, Name: name, Expected: true}
}

// killed returns the timeline of a component that is killed at 10 s, started at 15 s and
// ready at 18 s.
func killed(name string, more ...result.Event) []result.Event {
	return append([]result.Event{
		event(0, "lease", "kube-scheduler-0"), asked(9.95, name), begin(10, "kill", name), end(15), event(15, "start", name), event(18, "ready", name),
	}, more...)
}

// A fault keeps its own components away until they are ready again, and also the components
// that cannot respond without them. It affects no others and no other time.
func TestOutagesOfComponents(t *testing.T) {
	type look struct {
		component string
		at        float64
		want      string
	}
	for name, c := range map[string]struct {
		timeline []result.Event
		looks    []look
	}{
		"kill of etcd": {killed("etcd-0"), []look{
			{"etcd-0", 8, ""}, {"etcd-0", 9.9, "kill"}, {"etcd-0", 17, "kill"}, {"etcd-0", 30, "kill"}, {"etcd-0", 34, ""},
			{"etcd-1", 12, ""}, {"kube-apiserver-0", 12, ""}, {"kube-scheduler-0", 8, ""}, {"kube-scheduler-0", 12, "kill"}, {"kube-scheduler-0", 34, ""},
		}},
		"kill of an API server": {killed("kube-apiserver-0"), []look{
			{"kube-apiserver-0", 12, "kill"}, {"kube-apiserver-1", 12, ""}, {"kube-scheduler-0", 12, "kill"}, {"etcd-0", 12, ""},
		}},
		// The scheduler can authorize scrapes only when the API server is ready.
		"an API server that is slow to come back": {
			append(killed("kube-apiserver-0")[:5], event(70, "ready", "kube-apiserver-0")), []look{{"kube-scheduler-0", 65, "kill"}, {"kube-scheduler-0", 90, ""}},
		},
		"kill of a scheduler": {killed("kube-scheduler-0"), []look{{"kube-scheduler-0", 12, "kill"}, {"kube-apiserver-0", 12, ""}}},
		"a scheduler that lost its lease": {
			killed("etcd-0", event(40, "exit", "kube-scheduler-0"), event(52, "ready", "kube-scheduler-0")),
			[]look{{"kube-scheduler-0", 36, ""}, {"kube-scheduler-0", 45, "kill"}, {"kube-scheduler-0", 66, "kill"}, {"kube-scheduler-0", 70, ""}},
		},
		"pause":               {[]result.Event{begin(10, "pause", "etcd-0"), end(20)}, []look{{"etcd-0", 15, "pause"}, {"etcd-0", 34, "pause"}, {"etcd-0", 36, ""}, {"etcd-1", 15, ""}}},
		"too few descriptors": {[]result.Event{begin(10, "descriptorLimit", "kube-apiserver-0"), end(20)}, []look{{"kube-apiserver-0", 15, "descriptorLimit"}, {"etcd-0", 15, ""}}},
		// The members are restarted one after another before the quota is active.
		"etcdQuota": {
			[]result.Event{asked(2, "etcd-0"), event(4, "ready", "etcd-0"), asked(4, "etcd-1"), begin(9, "etcdQuota", "etcd-0", "etcd-1"), end(20)},
			[]look{{"etcd-0", 3, "etcdQuota"}, {"etcd-1", 6, "etcdQuota"}, {"kube-scheduler-0", 3, ""}},
		},
		"a rollout that ends its API server slowly": {
			[]result.Event{begin(10, "restart", "kube-apiserver-0"), asked(29, "kube-apiserver-0"), end(29.1), event(29.1, "start", "kube-apiserver-0"), event(40, "ready", "kube-apiserver-0")},
			[]look{{"kube-apiserver-0", 35, "restart"}, {"kube-apiserver-0", 54, "restart"}, {"kube-apiserver-0", 56, ""}},
		},
		"a restore of etcd by a person": {[]result.Event{asked(10, "etcd-0"), event(15, "ready", "etcd-0")}, []look{{"etcd-0", 12, ""}}},
	} {
		outages, unexplained := Of(c.timeline).Outages()
		for _, l := range c.looks {
			if got := outages.Fault(l.component, at(l.at), at(l.at)); got != l.want {
				t.Errorf("%s: %s at %v s is away by %q, want %q", name, l.component, l.at, got, l.want)
			}
		}
		if len(unexplained) > 0 {
			t.Errorf("%s: no fault explains %+v", name, unexplained)
		}
	}
}

// These faults only slow components down, because scrapes go directly to the component.
func TestSlowServerIsNoOutage(t *testing.T) {
	components := []string{"etcd-0", "etcd-1", "kube-apiserver-0", "kube-scheduler-0", "kube-controller-manager-0"}
	for kind, want := range map[string][]string{
		"slowFsync": nil, "diskContention": nil, "networkDelay": nil, "webhook": nil,
		"partition": {"kube-scheduler-0", "kube-controller-manager-0"}, // the API server that authorizes their scrapes may be unreachable
	} {
		var on []string
		if kind != "diskContention" && kind != "webhook" {
			on = []string{"etcd-0", "kube-apiserver-0"}
		}
		outages, _ := Of([]result.Event{
			event(0, "lease", "kube-scheduler-0"), event(0, "lease", "kube-controller-manager-0"), begin(10, kind, on...), end(20),
		}).Outages()
		var got []string
		for _, name := range components {
			if outages.Fault(name, at(15), at(15)) != "" {
				got = append(got, name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s keeps %q away, want %q", kind, got, want)
		}
	}
}

// Exits caused by a fault are expected; all others are reported.
func TestExitsAreAttributed(t *testing.T) {
	const api, etcd, scheduler, manager = "kube-apiserver-0", "etcd-0", "kube-scheduler-0", "kube-controller-manager-0"
	under := func(kind string, on ...string) func(exit result.Event) []result.Event {
		return func(exit result.Event) []result.Event { return []result.Event{begin(10, kind, on...), end(20), exit} }
	}
	for name, c := range map[string]struct {
		timeline  []result.Event
		explained bool
	}{
		"API server under a webhook":               {under("webhook")(event(15, "exit", api)), false},
		"scheduler under a webhook":                {under("webhook")(event(15, "exit", scheduler)), false},
		"API server under a slow fsync":            {under("slowFsync", etcd)(event(15, "exit", api)), false},
		"another member under a slow fsync":        {under("slowFsync", etcd)(event(15, "exit", "etcd-1")), false},
		"its member under a slow fsync":            {under("slowFsync", etcd)(event(15, "exit", etcd)), true},
		"scheduler under a slow fsync":             {under("slowFsync", etcd)(event(15, "exit", scheduler)), true},
		"manager under a busy disk":                {under("diskContention")(event(15, "exit", manager)), true},
		"etcd under a busy disk":                   {under("diskContention")(event(15, "exit", etcd)), false},
		"manager under slow links":                 {under("networkDelay", etcd)(event(15, "exit", manager)), true},
		"API server under slow links of etcd":      {under("networkDelay", etcd)(event(15, "exit", api)), false},
		"manager in a partition":                   {under("partition", api)(event(15, "exit", manager)), true},
		"scheduler while the API server is paused": {under("pause", api)(event(15, "exit", scheduler)), true},
		"scheduler that was paused":                {under("pause", scheduler)(event(21, "exit", scheduler)), true},
		"manager while the scheduler is paused":    {under("pause", scheduler)(event(15, "exit", manager)), false},
		"half a minute after":                      {under("slowFsync", etcd)(event(49, "exit", scheduler)), true},
		"later":                                    {under("slowFsync", etcd)(event(51, "exit", scheduler)), false},
		"before":                                   {under("slowFsync", etcd)(event(8, "exit", scheduler)), false},
		"without a fault":                          {[]result.Event{event(8, "exit", scheduler)}, false},
		// A kill ends a process once. It does not account for exits of the next process.
		"what was killed":                               {killed(etcd), true},
		"what was killed, and then ends by itself":      {killed(etcd, event(16, "exit", etcd)), false},
		"a scheduler that was killed and has no etcd":   {append(killed(scheduler), begin(14, "pause", etcd), event(16, "exit", scheduler)), true},
		"an API server that was killed and has no etcd": {append(killed(api)[:5], begin(14, "pause", etcd), event(16, "exit", api)), true},
		"an API server that was ready and has no etcd":  {append(killed(api), begin(14, "pause", etcd), event(19, "exit", api)), false},
		"killed, of a supervisor that marks nothing":    {[]result.Event{event(9.95, "exit", etcd), begin(10, "kill", etcd), end(15)}, true},
		"a second API server, of such a supervisor":     {[]result.Event{event(9.95, "exit", etcd), begin(10, "kill", etcd), end(15), event(12, "exit", api)}, false},
		"out of order, as a follower may write it":      {[]result.Event{begin(10, "kill", etcd), asked(9.95, etcd), end(15)}, true},
		"again and again, long after the fault": {append(under("pause", etcd)(event(49, "exit", scheduler)),
			event(60, "start", scheduler), event(70, "exit", scheduler), event(90, "start", scheduler), event(100, "exit", scheduler)), true},
		"again, when it had lived": {append(under("pause", etcd)(event(49, "exit", scheduler)), event(60, "start", scheduler), event(95, "exit", scheduler)), false},
		"stopped by a person":      {[]result.Event{asked(10, etcd)}, true},
	} {
		_, unexplained := Of(c.timeline).Outages()
		if (len(unexplained) == 0) != c.explained {
			t.Errorf("%s: no fault accounts for %v, want accounted for: %v", name, unexplained, c.explained)
		}
	}
}

// With several faults, each outage names its own fault.
func TestEachOutageHasItsFault(t *testing.T) {
	restart, over := begin(50, "restart", "etcd-0"), end(51)
	restart.Fault, over.Fault = "2", "2"
	outages, _ := Of([]result.Event{asked(19.99, "etcd-0"), begin(20, "kill", "etcd-0"), end(25), restart, asked(50.5, "etcd-0"), over}).Outages()
	for s, want := range map[float64]string{18: "", 19.5: "kill", 39: "kill", 45: "", 50: "restart", 65: "restart", 67: ""} {
		if got := outages.Fault("etcd-0", at(s), at(s)); got != want {
			t.Errorf("at %v s: %q, want %q", s, got, want)
		}
	}
}

// The exits of a component in a crash loop are processed in linear time. A day of crashes
// gives tens of thousands of exits.
func TestCrashLoopIsReadInLinearTime(t *testing.T) {
	const exits = 100_000
	for name, ready := range map[string]bool{"ready each time": true, "never ready": false} {
		events := []result.Event{begin(1, "kill", "etcd-0"), end(2)}
		for i := range exits {
			events = append(events, event(float64(i), "exit", "etcd-0"))
			if ready {
				events = append(events, event(float64(i)+0.5, "ready", "etcd-0"))
			}
		}
		start := time.Now()
		_, unexplained := Of(events).Outages()
		if took := time.Since(start); took > 30*time.Second { // quadratic time would be minutes
			t.Errorf("%s: Outages took %s, want less than 30 s", name, took)
		}
		if len(unexplained) < exits-100 {
			t.Errorf("%s: %d of %d exits are unexplained", name, len(unexplained), exits)
		}
	}
}

// A component that hands its lease over is started again. Its scrapes are excused and the exit needs no fault. If a fault accounts
// for the exit, the outage names the fault.
func TestHandoverIsAnOutage(t *testing.T) {
	const name = "kube-scheduler-0"
	handover := event(10, result.EventExit, name)
	handover.Handover = true
	back := []result.Event{handover, event(10.1, result.EventStart, name), event(12, result.EventReady, name)}
	outages, unexplained := Of(back).Outages()
	if len(unexplained) > 0 {
		t.Errorf("unexplained: %+v", unexplained)
	}
	for s, want := range map[float64]string{8: "", 11: "handover of its lease", 26: "handover of its lease", 28: ""} {
		if got := outages.Fault(name, at(s), at(s)); got != want {
			t.Errorf("at %v s it is away by %q, want %q", s, got, want)
		}
	}
	if got := outages.Fault("kube-scheduler-1", at(11), at(11)); got != "" {
		t.Errorf("kube-scheduler-1 is unavailable because of %q", got)
	}
	outages, _ = Of(append([]result.Event{begin(5, "slowFsync", "etcd-0"), end(20)}, back...)).Outages()
	if got := outages.Fault(name, at(11), at(11)); got != "slowFsync" {
		t.Errorf("the component under a fault is unavailable because of %q", got)
	}
	// A crash soon after the new start does not belong to the handover.
	if _, unexplained = Of(append(back, event(14, result.EventExit, name))).Outages(); len(unexplained) != 1 {
		t.Errorf("a crash after it: %+v", unexplained)
	}
}
