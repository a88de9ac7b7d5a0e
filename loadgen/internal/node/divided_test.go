package node

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// dividedFleet is a fleet in some parts, with a clock that stands still.
type dividedFleet struct {
	*Divided
	stub  *stub
	parts []*Fleet
	cloud *cloudStub
}

func newDivided(t *testing.T, of int, change func(*Config)) *dividedFleet {
	t.Helper()
	d := &dividedFleet{stub: newStub(t), cloud: &cloudStub{}}
	clock := newFakeClock(time.Unix(1000, 0))
	var config Config
	var parts []Part
	for i := range of {
		part := d.stub.fleet(31, func(c *Config) {
			c.clock, c.Seed, c.Cloud, c.Spec.Later = clock, 42, d.cloud, 6
			c.Spec.RegisterRate = 1e10 // all at once
			c.Spec.Pools = []scenario.NodePool{{Name: "small", Weight: 2, CPU: "2"}, {Name: "large", Weight: 1, CPU: "16"}}
			if change != nil {
				change(c)
			}
			config = *c
			c.Part = load.Share{Index: i, Of: of}
		})
		d.parts, parts = append(d.parts, part), append(parts, part)
	}
	config.Part = load.Share{}
	var err error
	d.Divided, err = Divide(config, parts)
	must(t, err)
	return d
}

// dues returns the times of the next renewal of each node that renews, by its name.
func (d *dividedFleet) dues() map[string]time.Time {
	all := map[string]time.Time{}
	for _, p := range d.parts {
		for _, k := range p.kubelets {
			k.mu.Lock()
			if k.heartbeat != nil {
				k.heartbeat.mu.Lock()
				all[k.name] = k.heartbeat.due
				k.heartbeat.mu.Unlock()
			}
			k.mu.Unlock()
		}
	}
	return all
}

// known returns the Nodes that the API server has, without their identity and versions.
func (d *dividedFleet) known() map[string]corev1.Node {
	all := map[string]corev1.Node{}
	d.stub.locked(func() {
		for name, n := range d.stub.nodes {
			n := n.DeepCopy()
			n.UID = ""
			all[name] = *n
		}
	})
	return all
}

// history records the nodes of one fleet and what they do.
type history struct {
	Names []string
	Nodes map[string]corev1.Node
	Dues  []map[string]time.Time
	Hit   []string // by each fault in turn
}

func (d *dividedFleet) live(t *testing.T) history {
	var h history
	must(t, d.Start(t.Context()))
	eventually(t, "all are Ready", func() bool { return d.Live().Ready == 25 })
	h.Names, h.Nodes, h.Dues = d.Names(), d.known(), append(h.Dues, d.dues())
	for _, f := range []Fault{
		{Kind: control.NodeFailure, Fraction: 0.2},
		{Kind: control.SlowKubelet, Fraction: 0.3, Delay: time.Second},
		{Kind: control.SlowKubelet, Fraction: 0.3},
		{Kind: control.KubeletUnreachable, Fraction: 0.5},
		{Kind: control.InstancesVanish, Fraction: 0.1},
		{Kind: control.NodeRecovery},
		{Kind: control.NodeScaleUp},
		{Kind: control.NodeFailure, Fraction: 0.5},
		{Kind: control.NodeRecovery},
		{Kind: control.NodeShutdown, Fraction: 1},
	} {
		names, err := d.Begin(f)
		must(t, err)
		h.Hit = append(h.Hit, fmt.Sprint(f.Kind, names))
		switch f.Kind {
		case control.InstancesVanish:
			d.cloud.mu.Lock()
			if n := len(d.cloud.instances); n != 22 {
				t.Errorf("got %d instances after some vanished", n)
			}
			d.cloud.mu.Unlock()
		case control.NodeRecovery, control.NodeScaleUp:
			eventually(t, "all are Ready after "+f.Kind, func() bool { l := d.Live(); return l.Ready == len(d.Names()) && l.Failed == 0 })
			h.Dues = append(h.Dues, d.dues())
		}
	}
	return h
}

// The nodes of several processes behave together as one process's nodes do: they are the same Nodes, renew their Leases
// at the same times and are hit by the same faults, regardless of what happened before.
func TestPartsAreTheOneFleet(t *testing.T) {
	t.Log("seed 42")
	one := newDivided(t, 1, nil).live(t)
	if len(one.Names) != 25 || len(one.Nodes) != 25 || len(one.Dues[0]) != 25 || len(one.Dues[2]) != 31 {
		t.Fatalf("got %d names, %d nodes, renewals %v", len(one.Names), len(one.Nodes), one.Dues)
	}
	for _, of := range []int{2, 3, 7} {
		got := newDivided(t, of, nil).live(t)
		if !slices.Equal(got.Names, one.Names) {
			t.Errorf("%d parts: names %v", of, got.Names)
		}
		if !reflect.DeepEqual(got.Nodes, one.Nodes) {
			t.Errorf("%d parts: nodes %v", of, got.Nodes)
		}
		for i := range one.Dues {
			if !reflect.DeepEqual(got.Dues[i], one.Dues[i]) {
				t.Errorf("%d parts renew at %v, one at %v", of, got.Dues[i], one.Dues[i])
			}
		}
		if !slices.Equal(got.Hit, one.Hit) {
			t.Errorf("%d parts are hit by\n%q\none by\n%q", of, got.Hit, one.Hit)
		}
	}
}

// The faults of an undivided fleet hit the same nodes as in a divided fleet.
func TestWholeFleetIsHitAsItsParts(t *testing.T) {
	whole := newStub(t).fleet(31, func(c *Config) { c.Seed = 42 })
	parts := newDivided(t, 3, func(c *Config) { c.Spec.Later = 0 })
	for range 3 {
		a, b := Fault{Kind: control.NodeFailure, Fraction: 0.2}, Fault{Kind: control.SlowKubelet, Fraction: 0.2, Delay: time.Second}
		for _, f := range []Fault{a, b} {
			names, err := parts.Begin(f)
			must(t, err)
			if want := whole.hit(f); !slices.Equal(names, want) {
				t.Errorf("%s hits %v of three parts, %v of the whole", f.Kind, names, want)
			}
		}
	}
}

// Pods start in the part that has their node, also with fidelity "shared".
func TestPartsStartTheirPods(t *testing.T) {
	for _, fidelity := range []string{Lean, Shared} {
		s := newStub(t)
		var config Config
		var parts []Part
		for i := range 3 {
			f := s.fleet(7, func(c *Config) {
				if c.Spec.Fidelity = fidelity; fidelity == Shared {
					c.Identities = NewShared(s.config())
				}
				config, c.Part = *c, load.Share{Index: i, Of: 3}
			})
			parts = append(parts, f)
		}
		d, err := Divide(config, parts)
		must(t, err)
		must(t, d.Start(t.Context()))
		for _, name := range d.Names() {
			s.bind(name, "pod-"+name, nil)
		}
		s.await("seven pods are Ready", func() bool {
			n := 0
			for _, p := range s.pods {
				if isReady(p) {
					n++
				}
			}
			return n == 7
		})
		eventually(t, "they are counted", func() bool { return d.Results().PodsStarted == 7 })
		if r := d.Results(); r.Count != 7 || r.Fidelity != fidelity || r.ReadySeconds <= 0 || d.Live().Registered != 7 {
			t.Errorf("%s: results %+v", fidelity, r)
		}
		d.Stop(t.Context())
		s.await("every connection is closed", func() bool { return len(s.conns) == 0 })
	}
}

// told is a part with given results.
type told struct {
	Part
	tally Tally
}

func (p told) Tally() Tally { return p.tally }

// Results of parts are added up. Renewals are added as counts of histograms, never as quantiles.
func TestResultsOfPartsAreAdded(t *testing.T) {
	whole, err := newLedger(nil, interval)
	must(t, err)
	d := newDivided(t, 1, nil).Divided
	d.chooser.parts = nil
	for i, took := range []time.Duration{time.Millisecond, time.Second} {
		part, err := newLedger(nil, interval)
		must(t, err)
		for _, l := range []*ledger{whole, part} {
			for range 10 * (i + 1) {
				l.renewed(took)
			}
			l.missed(&l.missedHere, 2*took)
			l.request("patch", "pods/status", "409")
			l.lived("crashes", "container_restarted")
			l.watchOpened()
			l.podsStarted.Add(5)
		}
		tally := Tally{Sums: part.results(), Heartbeat: part.heartbeat.Counts()}
		tally.Sums.Heartbeat = result.Latency{}
		tally.Sums.ReadySeconds = float64(i + 1)
		d.chooser.parts = append(d.chooser.parts, told{tally: tally})
	}
	want := whole.results()
	want.Count, want.Fidelity, want.ReadySeconds = 31, Lean, 2
	got := d.Results()
	want.Heartbeat.Mean, got.Heartbeat.Mean = 0, 0 // the order of additions moves its last digit
	if !reflect.DeepEqual(got, want) {
		t.Errorf("added up %+v\nwant %+v", got, want)
	}
	d.chooser.parts = append(d.chooser.parts, told{})
	if r := d.Results(); r.ReadySeconds != 0 {
		t.Errorf("all nodes were Ready after %v s, but the nodes of one part are not", r.ReadySeconds)
	}
}

func TestPartsAreChecked(t *testing.T) {
	s := newStub(t)
	good := s.fleet(2, nil).plan.Config
	for want, change := range map[string]func(*Config){
		"part 2 of 3 has no nodes":                      func(c *Config) { c.Part = load.Share{Index: 2, Of: 3} },
		"requires that one process simulates all nodes": func(c *Config) { c.Part, c.API = load.Share{Of: 2}, &API{} },
		`fidelity "x" is unknown`:                       func(c *Config) { c.Part, c.Spec.Fidelity = load.Share{Of: 2}, "x" },
	} {
		c := good
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
	good.Spec.Count = 0
	if _, err := Divide(good, nil); err == nil || !strings.Contains(err.Error(), "count is 0") {
		t.Errorf("no nodes: %v", err)
	}
}
