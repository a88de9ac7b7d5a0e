package run

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/result"
)

// own is an action, a measurement or both. It behaves as its fields specify.
type own struct {
	log     *[]string
	start   error
	figures []result.CustomFigure
	stop    error
}

func (o own) note(what string) { *o.log = append(*o.log, what) }

func (o own) Do(_ context.Context, _ *rest.Config, _ string, labels map[string]string) error {
	o.note("do " + labels["stormglass.dev/run"])
	return o.stop
}

func (o own) Prepare(context.Context, *rest.Config, string, map[string]string) error {
	o.note("prepare")
	return nil
}

func (o own) Start(_ context.Context, phase string) error {
	o.note("start " + phase)
	return o.start
}

func (o own) Stop(context.Context) ([]result.CustomFigure, error) {
	o.note("stop")
	return o.figures, o.stop
}

const customPhases = `phases: [{name: p, for: 1s, actions: [{kind: custom, name: rotate}]}, {name: q, for: 1s}]
gates: [{name: g, objective: custom-figure, figure: reconcile/p99, max: 1s}]
`

// Run compares the custom actions and measurements of the scenario with the program's before it starts anything.
func TestCustomCodeIsGivenForWhatTheScenarioNames(t *testing.T) {
	const action = "mine.yaml:4: phases.p.actions.rotate: action rotate has kind: custom, which only a Go program can run (run the scenario from a Go program that sets this action in loadgen.Options.Actions)"
	const measurement = "mine.yaml:5: gates.g.figure: measurement reconcile has kind: custom, which only a Go program can take (run the scenario from a Go program that sets this measurement in loadgen.Options.Measurements)"
	var log []string
	rotate, reconcile := map[string]Action{"rotate": own{log: &log}}, map[string]Measurement{"reconcile": own{log: &log}}
	for want, o := range map[string]Options{
		action + "\n" + measurement: {},
		action:                      {Measurements: reconcile},
		measurement:                 {Actions: rotate},
		`Options.Actions: scenario mine has no custom action "rename"`: {Measurements: reconcile, Actions: map[string]Action{"rotate": own{}, "rename": own{}}},
	} {
		o.Scenario, o.Progress = parse(t, customPhases), silent{}
		_, err := Run(t.Context(), o)
		if err == nil || err.Error() != want || exitcode.Of(err) != exitcode.Usage {
			t.Errorf("got  %v\nwant %s", err, want)
		}
	}
}

// Each phase has the figures of its measurements, or the reason why a measurement has no figures.
func TestFiguresOfPhases(t *testing.T) {
	var log []string
	p99 := []result.CustomFigure{{Name: "p99", Value: 0.25, Unit: "seconds"}}
	o := Options{
		Actions: map[string]Action{"rotate": own{log: &log}},
		Measurements: map[string]Measurement{
			"reconcile": own{log: &log, figures: p99}, "lost": own{log: &log, stop: errors.New("no watch")}, "late": own{log: &log, start: errors.New("no lease")},
			"odd": own{log: &log, figures: []result.CustomFigure{{Name: "p99", Value: 1, Unit: "s"}}},
		},
	}
	r := underway(t, parse(t, customPhases))
	r.target.Load = nowhere()
	var err error
	if r.custom, err = newCustom(t.Context(), o, r.target.Target); err != nil {
		t.Fatal(err)
	}
	r = newRun(r.site, r.instruments, r.drivers)
	if err := r.phases.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	unit := `figure p99 has the unknown unit "s" (one of ["" "seconds" "ratio" "bytes" "count" "per hour" "per second"])`
	want := []result.Custom{{Measurement: "late", Error: "no lease"}, {Measurement: "lost", Error: "no watch"}, {Measurement: "odd", Error: unit}, {Measurement: "reconcile", Figures: p99}}
	for _, p := range r.measured().Phases {
		if !reflect.DeepEqual(p.Custom, want) {
			t.Errorf("figures of phase %s: %+v", p.Name, p.Custom)
		}
	}
	counts := map[string]int{}
	for _, what := range log {
		counts[what]++
	}
	if counts["prepare"] != 4 || counts["start p"] != 4 || counts["start q"] != 4 || counts["stop"] != 6 || counts["do 0123456789"] != 1 {
		t.Errorf("%v", counts)
	}
	if i := slices.Index(log, "do 0123456789"); i < slices.Index(log, "start p") || i > slices.Index(log, "stop") {
		t.Errorf("the action did not run within its phase: %v", log)
	}
	if err := errors.Join(r.archiver.close(), r.timeline.Close()); err != nil {
		t.Fatal(err)
	}
}

// A custom action that fails ends the run. The error names the action.
func TestFailedActionEndsTheRun(t *testing.T) {
	var log []string
	r := underway(t, parse(t, customPhases))
	r.target.Load = nowhere()
	r.custom, _ = newCustom(t.Context(), Options{Actions: map[string]Action{"rotate": own{log: &log, stop: errors.New("no key")}}}, r.target.Target)
	r = newRun(r.site, r.instruments, r.drivers)
	err := r.phases.run(t.Context())
	if exitcode.Of(err) != exitcode.Environment || err.Error() != "phase p: action rotate: no key" {
		t.Errorf("exit code %d: %v", exitcode.Of(err), err)
	}
	if err := errors.Join(r.archiver.close(), r.timeline.Close()); err != nil {
		t.Fatal(err)
	}
}

// checkSettings returns an error if a control plane that was started before the run lacks a setting of the scenario.
func TestSettingsOfASharedPlane(t *testing.T) {
	s := parse(t, "controlPlane: {etcd: {members: 3}, scheduler: {flags: {v: '3'}}}\nphases: [{name: p, for: 1s}]\n")
	same := control.Cluster{Dir: "plane", Config: s.ControlPlane}
	if err := checkSettings(plan.Of(s), same); err != nil {
		t.Error(err)
	}
	if err := checkSettings(plan.Of(parse(t, "phases: [{name: p, for: 1s}]\n")), same); err != nil {
		t.Errorf("error for a scenario without settings: %v", err)
	}
	err := checkSettings(plan.Of(s), control.Cluster{Dir: "plane"})
	want := "mine.yaml:4: controlPlane.etcd.members: the control plane in plane, which was started before the run, does not have this setting (start the control plane with this setting, or leave the setting out)\n" +
		"mine.yaml:4: controlPlane.scheduler.flags: the control plane in plane,"
	if err == nil || !strings.HasPrefix(err.Error(), want) || exitcode.Of(err) != exitcode.Usage {
		t.Errorf("%v", err)
	}
}

// The timeline of a run on a shared control plane contains no events of earlier runs.
func TestEarlierEventsAreLeftOut(t *testing.T) {
	to := newTarget(nil, nil, nil)
	s := past{events: []control.Event{{Seq: 3}, {Seq: 5, Kind: control.EventLease, Component: "kube-scheduler-0"}, {Seq: 7}}, faults: []control.FaultStatus{{ID: "1"}}}
	if err := to.skipPast(t.Context(), s); err != nil || to.eventsBefore != 7 || len(to.leadersBefore) != 1 || !to.faultsBefore["1 "+string(result.EventFaultBegin)] {
		t.Errorf("skipPast: %v; last event %d, faults %v", err, to.eventsBefore, to.faultsBefore)
	}
}

type past struct {
	supervisor
	events []control.Event
	faults []control.FaultStatus
}

func (p past) Events(context.Context, int64) ([]control.Event, error) { return p.events, nil }

func (p past) Faults(context.Context) ([]control.FaultStatus, error) { return p.faults, nil }
