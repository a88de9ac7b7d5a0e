package scenario

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

const compared = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: contention
controlPlane: {scheduler: {qps: 10}}
nodes: {count: 10}
phases:
  - name: storm
    for: 30s
    faults: [{kind: diskContention, after: 5s}]
variants:
  - {name: stacked}
  - name: external
    set:
      controlPlane.etcd.topology: external
      controlPlane.scheduler: {qps: 20}
      phases.storm.for: 1m
      gates.both.max: 2m
gates:
  - {name: both, objective: phase-duration, max: 40s}
  - {name: fast, objective: wal-fsync, max: 10ms, variants: [external]}
compare:
  - {name: fsync, objective: wal-fsync}
`

func read(t *testing.T, text string, sets ...string) *Scenario {
	t.Helper()
	s, err := Parse("mine.yaml", []byte(text), sets)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A variant is the scenario with the variant's fields applied over it and over --set, with
// its own gates; the scenario itself does not change.
func TestVariantsOverrideTheScenario(t *testing.T) {
	s := read(t, compared, "nodes.count=20")
	if got := s.AllVariants(); len(got) != 2 || got[0].Variant != "stacked" || got[1].Variant != "external" {
		t.Fatalf("variants %v", got)
	}
	stacked, external := s.AllVariants()[0], s.AllVariants()[1]
	for _, v := range []*Scenario{s, stacked} {
		if v.ControlPlane.Etcd.Topology != "" || v.Phases[0].For.D() != 30*time.Second || v.ControlPlane.Scheduler.QPS != 10 || v.Nodes.Count != 20 {
			t.Errorf("%q was changed by another: %+v", v.Variant, v)
		}
	}
	if v := external; v.ControlPlane.Etcd.Topology != "external" || v.Phases[0].For.D() != time.Minute || v.ControlPlane.Scheduler.QPS != 20 || v.Nodes.Count != 20 {
		t.Errorf("external is %+v", v)
	}
	if len(stacked.Gates) != 1 || len(external.Gates) != 2 || external.Gates[0].Max.Value != 120 {
		t.Errorf("gates of stacked %v, of external %v", stacked.Gates, external.Gates)
	}
	// A variant's own file names the variant and reads the same again.
	text, err := external.Resolved()
	if err != nil {
		t.Fatal(err)
	}
	again := read(t, string(text))
	if second, err := again.Resolved(); err != nil || string(second) != string(text) || again.Variant != "external" {
		t.Errorf("the resolved scenario changes when it is read again (%v):\n%s\n%s", err, text, second)
	}
	if err := s.DropGates([]string{"both"}); err != nil || len(external.Gates) != 1 {
		t.Errorf("gates of external %v, %v", external.Gates, err)
	}
	if _, err := s.WithVariant("exernal"); err == nil || !strings.Contains(err.Error(), `did you mean "external"?`) {
		t.Errorf("error %v", err)
	}
}

// The scenario is parsed once for each variant, so the number of variants and the size of the file have a bound.
func TestTooManyVariantsAreRefused(t *testing.T) {
	for _, c := range []struct{ variants, padding int }{{101, 0}, {40, 200_000}} {
		var text strings.Builder
		text.WriteString("apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: many\nphases: [{name: a, for: 1s}]\nvariants:\n")
		for i := range c.variants {
			fmt.Fprintf(&text, "  - {name: v%d}\n", i)
		}
		text.WriteString("#" + strings.Repeat("x", c.padding))
		want := fmt.Sprintf("mine.yaml:5: variants: %d variants are too many for a file of %d bytes (at most 100 variants, and at most 4 MiB for the file's size times the number of variants)", c.variants, text.Len())
		if _, err := Parse("mine.yaml", []byte(text.String()), nil); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// A fault that needs links turns them on in all variants, and a warning says so.
func TestNetworkFaultsTurnTheLinksOn(t *testing.T) {
	const text = `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: cut
phases:
  - {name: a, for: 30s}
variants:
  - {name: whole}
  - {name: cut, set: {"phases.a.faults": [{kind: partition, component: kube-apiserver-0, peers: [etcd]}]}}
`
	s := read(t, text)
	for _, v := range append(s.AllVariants(), s) {
		if v.ControlPlane.NetworkFaults != control.NetworkFaultsOn {
			t.Errorf("variant %q has no links", v.Variant)
		}
	}
	cut, err := s.WithVariant("cut")
	if err != nil {
		t.Fatal(err)
	}
	if w := cut.Warnings(); len(w) != 1 || !strings.Contains(w[0], "mine.yaml:9: variants.cut.set: phases.a.faults[0]: networkFaults was turned on, so traffic between components passes through proxies") {
		t.Errorf("warnings %q", w)
	}
	if w := s.AllVariants()[0].Warnings(); len(w) != 1 || !strings.Contains(w[0], "networkFaults was turned on as in variant cut") {
		t.Errorf("warnings of whole %q", w)
	}
}

// An even number of members is accepted, with a warning that shows the arithmetic.
func TestEvenMembersWarn(t *testing.T) {
	s := read(t, "apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: even\ncontrolPlane: {etcd: {members: 4}}\nphases: [{name: a, for: 1s}]\n")
	want := "mine.yaml:4: controlPlane.etcd.members: 4 members have a quorum of 3 and survive the loss of 1; 3 members survive as many (use 3 or 5 members; 5 survive the loss of 2)"
	if w := s.Warnings(); len(w) != 1 || w[0] != want {
		t.Errorf("warnings %q, want %q", w, want)
	}
}

func TestFaultTimes(t *testing.T) {
	s := read(t, `
apiVersion: stormglass/v1alpha1
kind: Scenario
name: kills
seed: 7
controlPlane: {etcd: {members: 3}}
phases:
  - name: a
    for: 30s
    faults: [{kind: kill, component: etcd-leader, after: 2s, for: 3s, repeat: 3, every: 10s}]
  - name: b
    for: 30s
    faults: [{kind: slowFsync, delay: 25ms}]
`)
	f := s.Faults()[0]
	if got := f.Times(); !slices.Equal(got, []time.Duration{2 * time.Second, 12 * time.Second, 22 * time.Second}) || f.Span() != 25*time.Second {
		t.Errorf("times %v, span %v", got, f.Span())
	}
	if c := s.Faults()[1].Control(s.Seed); c.Delay != 25*time.Millisecond || !slices.Equal(c.Components, []string{"etcd"}) || c.For != 0 || c.Seed != 7 {
		t.Errorf("fault = %+v", c)
	}
}

// Each variant has its own replays.
func TestVariantsReadTheirReplays(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"again.yaml":   replayed + "variants: [{name: slow, set: {phases.a.load.r.shape.file: other.txt}}]\n",
		"arrivals.txt": "1\n", "other.txt": "1.5\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Read(filepath.Join(dir, "again.yaml"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := s.Loads()[0].Shape.Times, s.AllVariants()[0].Loads()[0].Shape.Times; !slices.Equal(a, []float64{1}) || !slices.Equal(b, []float64{1.5}) {
		t.Errorf("times %v and %v", a, b)
	}
}
