package breakdown

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

// placing adds the counts of a scheduler that places n pods on 10 nodes. The scheduler measures the
// plugins of a tenth of the pods.
func placing(c *archivetest.Component, n float64) {
	edges := []float64{.0001, .0016, .0512, .2048}
	c.Add(`scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"}`, n)
	c.Observe(famPoint, `extension_point="Filter",profile="default-scheduler",status="Success"`, edges, .001, n)
	c.Observe(famPoint, `extension_point="Bind",profile="default-scheduler",status="Success"`, edges, .5, n)
	c.Add(`scheduler_plugin_evaluation_total{extension_point="Filter",plugin="NodeName",profile="default-scheduler"}`, 10*n)
	c.Observe(famPlugin, `extension_point="Filter",plugin="NodeName",status="Success"`, edges, .00001, n/2)
	c.Observe(famPlugin, `extension_point="Filter",plugin="NodeName",status="Unschedulable"`, edges, .00003, n/2)
	// The cheap executions in which a plugin has nothing to do are not counted.
	c.Add(`scheduler_plugin_evaluation_total{extension_point="PreFilter",plugin="NodePorts",profile="default-scheduler"}`, n/10)
	c.Observe(famPlugin, `extension_point="PreFilter",plugin="NodePorts",status="Skip"`, edges, .000001, n/10)
	c.Observe(famPlugin, `extension_point="PreFilter",plugin="NodePorts",status="Success"`, edges, .001, n/100)
	c.Observe(famPlugin, `extension_point="Bind",plugin="DefaultBinder",status="Success"`, edges, .5, n/20)
	// Signatures are measured each time, and dropped in both metrics.
	c.Observe(famPoint, `extension_point="Sign",profile="default-scheduler",status="Success"`, edges, .0001, n/4)
	c.Observe(famPlugin, `extension_point="Sign",plugin="NodePorts",status="Success"`, edges, .00001, n/5)
}

func TestSchedulerIsSplitByPointAndPlugin(t *testing.T) {
	lab := archivetest.New(t, scrape.Options{}, "kube-scheduler-0", "kube-scheduler-1")
	leader, standby := lab.Parts["kube-scheduler-0"], lab.Parts["kube-scheduler-1"]
	placing(leader, 1000) // before the phases: must not count
	phases := []result.Phase{
		lab.Phase("calm", nil),
		lab.Phase("storm", func() { placing(leader, 200); placing(standby, 100) }),
		lab.Phase("failover", func() { placing(standby, 50); leader.Restart() }),
	}
	all, err := Scheduler(context.Background(), &rundir.Recorded{Measurements: result.Measurements{Phases: phases}, Archive: lab.Archive()})
	if err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Phase != "storm" || all[0].Attempts != 300 || all[0].Missing != "" {
		t.Fatalf("want no split of a phase without attempts, and one split for both schedulers: %+v", all)
	}
	var got []string
	for _, e := range all[0].Points {
		got = append(got, fmt.Sprintf("%s %d %.4f %t %.2f", e.Name, e.Count, e.Mean, e.P99 != nil, e.Seconds))
	}
	for _, p := range all[0].Plugins {
		executions := int64(-1)
		if p.Executions != nil {
			executions = *p.Executions
		}
		got = append(got, fmt.Sprintf("%s %s %d %d %.6f %.4f", p.Point, p.Plugin, executions, p.Measured, p.Mean, p.Seconds))
	}
	want := []string{
		"Bind 300 0.5000 false 150.00", // over the last bucket
		"Filter 300 0.0010 true 0.30",
		"Sign 75 0.0001 true 0.01",
		"Bind DefaultBinder 300 15 0.500000 150.0000",
		"Filter NodeName 3000 300 0.000020 0.0600",
		"PreFilter NodePorts 30 3 0.001000 0.0300",
		"Sign NodePorts -1 60 0.000010 0.0006",
	}
	if !slices.Equal(got, want) {
		t.Errorf("split:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if f := all[1]; f.Phase != "failover" || f.Points != nil || f.Missing != "kube-scheduler-0 restarted in failover" {
		t.Errorf("a restart leaves counters that cannot be compared: %+v", f)
	}
}

func TestSchedulerThatWasNotScraped(t *testing.T) {
	lab := archivetest.New(t, scrape.Options{}, "kube-apiserver-0")
	p := lab.Phase("storm", nil)
	all, err := Scheduler(context.Background(), &rundir.Recorded{Measurements: result.Measurements{Phases: []result.Phase{p}}, Archive: lab.Archive()})
	if err != nil || all != nil {
		t.Errorf("%+v, %v", all, err)
	}
}
