package workload

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// deploys tells the tracker about a deploy action with the given kind of workload that the API server has accepted.
func (s *story) deploys(kind, name string, replicas int) {
	a := scenario.Action{Kind: "deploy", Workload: kind, Name: name, Replicas: replicas, Every: scenario.Duration(time.Minute)}
	d := s.of(name)
	d.deploy = &a
	s.want(name, int64(replicas), "1")
	s.accepted(name, 1, s.at)
}

func of(name string) func(*object) { return func(o *object) { o.deployment = name } }

func ofJob(name, job string) func(*object) {
	return func(o *object) { o.deployment, o.job = name, job }
}

func succeeded(o *object) { o.ready, o.ended, o.succeeded = false, true, true }

func (s *story) job(name, job string, completions, successes int64, f ...func(*object)) {
	s.at = s.at.Add(time.Second)
	o := object{kind: jobKind, name: job, uid: job, deployment: name, specReplicas: completions, successes: successes}
	for _, change := range f {
		change(&o)
	}
	s.saw(o, s.at, false)
}

func complete(o *object)  { o.complete = true }
func failedJob(o *object) { o.failed = true }

func (s *story) mustMiss(name string, want int64, when string) {
	s.t.Helper()
	if got := s.missing(s.of(name)); got != want {
		s.t.Errorf("%s: %s lacks %d pods, want %d", when, name, got, want)
	}
}

// While a StatefulSet's pod on a lost node is being deleted, no other pod can have its name.
func TestStatefulSetWaitsForItsLostPod(t *testing.T) {
	s := newStory(t)
	s.nodeIs("n0", true)
	s.nodeIs("n1", true)
	s.deploys(scenario.StatefulSet, "db", 2)
	s.pod("db-0", "n0", of("db"))
	s.pod("db-1", "n1", of("db"))
	whole := object{kind: statefulSetKind, name: "db", uid: "d", deployment: "db", specReplicas: 2, observed: 1, replicas: 2, updated: 2, available: 2}
	s.saw(whole, s.at, false)
	s.mustBeWhole(true, "deployed")
	failed := s.at
	s.nodesFailed(failed, []string{"n1"})
	s.nodeIs("n1", false)
	s.pod("db-1", "n1", of("db"), terminating)
	s.mustMiss("db", 1, "its pod is stuck")
	if st := s.states(failed.Add(time.Minute))[0]; st.stuck != 1 || *st.recovery != time.Minute {
		t.Errorf("stuck = %d, recovery = %s so far; want 1 and 1m0s", st.stuck, *st.recovery)
	}
	s.podGone("db-1")
	s.pod("db-1b", "n0", of("db"))
	took := s.at.Sub(failed)
	if st := s.states(failed.Add(time.Hour))[0]; st.stuck != 0 || st.missing != 0 || *st.recovery != took {
		t.Errorf("%+v, recovery after %s, want %s", st, *st.recovery, took)
	}
	s.mustBeWhole(true, "replaced")
}

// A DaemonSet has one pod per live node: it stays whole when nodes fail, and is not whole when they return.
func TestDaemonSetIsWholeOnNodesThatLive(t *testing.T) {
	s := newStory(t)
	s.deploys(scenario.DaemonSet, "agent", 0)
	status := func(n int64) {
		s.saw(object{kind: daemonSetKind, name: "agent", uid: "d", deployment: "agent", observed: 1, updated: n, available: n}, s.at, false)
	}
	for i := range 3 {
		s.nodeIs(fmt.Sprintf("n%d", i), true)
		s.mustBeWhole(false, "a node without a pod")
		s.pod(fmt.Sprintf("a%d", i), fmt.Sprintf("n%d", i), of("agent"))
		status(int64(i + 1))
		s.mustBeWhole(true, "one on each")
	}
	s.nodesFailed(s.at, []string{"n2"})
	s.mustBeWhole(true, "its pod is lost with its node")
	if n := s.liveNow().PodsWanted; n != 2 {
		t.Errorf("%d pods are wanted on 2 live nodes", n)
	}
	s.nodeIs("n2", false)
	s.pod("a2", "n2", of("agent"), starting) // the node lifecycle controller reports this
	back := s.at
	s.nodesRecovered(back)
	s.mustMiss("agent", 1, "the node is back, its pod is not Ready")
	s.pod("a2", "n2", of("agent"))
	s.mustBeWhole(true, "as before")
	if st := s.states(s.at)[0]; *st.recovery != s.at.Sub(back) {
		t.Errorf("recovery after %s, want %s", *st.recovery, s.at.Sub(back))
	}
	s.gone(object{kind: nodeKind, name: "n0"}, s.at)
	s.mustBeWhole(false, "a pod of a node that is gone")
	s.podGone("a0")
	s.mustBeWhole(true, "two nodes")
}

// A Job needs a Ready pod for each missing completion. Pods that have succeeded count even after their deletion.
func TestJobIsWholeWhileItRunsAndWhenItIsComplete(t *testing.T) {
	s := newStory(t)
	s.nodeIs("n0", true)
	s.nodeIs("n1", true)
	s.deploys(scenario.Job, "batch", 2)
	s.mustMiss("batch", 2, "before its Job was seen")
	s.pod("b0", "n0", ofJob("batch", "batch"))
	s.job("batch", "batch", 2, 0)
	s.mustBeWhole(false, "one of two pods")
	s.pod("b1", "n1", ofJob("batch", "batch"))
	s.mustBeWhole(true, "both run")
	s.pod("b0", "n0", ofJob("batch", "batch"), succeeded)
	s.podGone("b0")
	s.mustBeWhole(true, "one has succeeded, and its status is late")
	s.nodesFailed(s.at, []string{"n1"})
	s.mustMiss("batch", 1, "the other is lost")
	s.pod("b1", "n1", ofJob("batch", "batch"), terminating)
	s.pod("b2", "n0", ofJob("batch", "batch"))
	s.mustBeWhole(true, "replaced")
	s.pod("b2", "n0", ofJob("batch", "batch"), succeeded)
	s.job("batch", "batch", 2, 2)
	if c := *s.states(s.at)[0].jobs; c != (jobCounts{waiting: 1}) {
		t.Errorf("%+v: the object waits for its stuck pod", c)
	}
	s.podGone("b1")
	s.job("batch", "batch", 2, 2, complete)
	if c := *s.states(s.at)[0].jobs; c != (jobCounts{complete: 1}) {
		t.Errorf("jobs %+v, want one that is complete", c)
	}
	s.mustBeWhole(true, "complete")
}

func TestFailedJobIsNeverWhole(t *testing.T) {
	s := newStory(t)
	s.deploys(scenario.Job, "batch", 2)
	s.job("batch", "batch", 2, 1, failedJob)
	s.mustMiss("batch", 1, "failed")
	s.mustBeWhole(false, "failed")
}

// The minute in a Job's name distinguishes the runs of a CronJob, even after the Job is deleted.
func TestCronJobCountsItsRuns(t *testing.T) {
	s := newStory(t)
	s.at = time.Unix(100*60+30, 0)
	s.deploys(scenario.CronJob, "report", 1)
	s.saw(object{kind: cronJobKind, name: "report", uid: "c", deployment: "report"}, s.at, false)
	s.mustBeWhole(true, "no run is due")
	s.nodeIs("n0", true)
	s.pod("r101", "n0", ofJob("report", "report-101")) // the pod is seen before its Job
	s.job("report", "report-101", 1, 0)
	s.mustBeWhole(true, "its run has its pod")
	s.pod("r101", "n0", ofJob("report", "report-101"), succeeded)
	s.job("report", "report-101", 1, 1, complete)
	s.gone(object{kind: jobKind, name: "report-101", uid: "report-101", deployment: "report"}, s.at)
	s.job("report", "report-103", 1, 0)
	s.mustBeWhole(false, "a run without its pod")
	s.job("report", "report-103", 1, 0, failedJob)
	s.mustBeWhole(true, "a run that failed is over")
	st := s.states(time.Unix(104*60+5, 0))[0]
	if *st.jobs != (jobCounts{complete: 1, failed: 1}) || *st.runsMissed != 1 {
		t.Errorf("jobs %+v, %d runs missed; want one missed run, of minute 102", *st.jobs, *st.runsMissed)
	}
	if n := *s.states(time.Unix(104*60+11, 0))[0].runsMissed; n != 2 {
		t.Errorf("%d runs missed, want 2", n)
	}
}

func TestDeployMakesEachKind(t *testing.T) {
	s := newStub(t)
	s.patched = answer{200, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: "x", Generation: 1}}}
	w := s.workload()
	minutes := scenario.Duration(5 * time.Minute)
	for _, a := range []scenario.Action{
		{Kind: "deploy", Workload: "StatefulSet", Name: "db", Replicas: 3, PodManagementPolicy: "Parallel"},
		{Kind: "deploy", Workload: "DaemonSet", Name: "agent"},
		{Kind: "deploy", Workload: "Job", Name: "batch", Replicas: 4, RunFor: scenario.Duration(90 * time.Second), BackoffLimit: 9},
		{Kind: "deploy", Workload: "CronJob", Name: "sync", Replicas: 1, RunFor: minutes, Every: minutes, ConcurrencyPolicy: "Forbid"},
		{Kind: "rollingUpdate", Name: "db"},
		{Kind: "rollingUpdate", Name: "agent", MaxUnavailable: "10%"},
		{Kind: "scale", Name: "db", Replicas: 5},
		{Kind: "delete", Name: "sync"},
	} {
		if err := w.Do(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	sent := s.requests("PATCH")
	const apps, batch = "/apis/apps/v1/namespaces/ns/", "/apis/batch/v1/namespaces/ns/"
	for i, want := range []struct{ path, body string }{
		{"/api/v1/namespaces/ns/services/db", `"clusterIP":"None"`},
		{apps + "statefulsets/db", `"serviceName":"db","podManagementPolicy":"Parallel"`},
		{apps + "daemonsets/agent", `"tolerations":[{"key":"simulated","operator":"Exists","effect":"NoSchedule"},{"key":"pool","operator":"Exists"}]`},
		{batch + "jobs/batch", `"backoffLimit":9`},
		{batch + "cronjobs/sync", `"schedule":"*/5 * * * *","concurrencyPolicy":"Forbid"`},
		{apps + "statefulsets/db", `{"spec":{"template":{"metadata":{"annotations":{"stormglass.dev/revision":"2"}}}}}`},
		{apps + "daemonsets/agent", `"updateStrategy":{"type":"RollingUpdate","rollingUpdate":{"maxUnavailable":"10%"}}`},
		{apps + "statefulsets/db", `{"spec":{"replicas":5}}`},
	} {
		if sent[i].path != want.path || !strings.Contains(sent[i].body, want.body) {
			t.Errorf("patch %d: got %s of %s, want %s of %s", i, sent[i].body, sent[i].path, want.body, want.path)
		}
	}
	var job batchv1.Job
	if err := json.Unmarshal([]byte(sent[3].body), &job); err != nil {
		t.Fatal(err)
	}
	if pod := job.Spec.Template; *job.Spec.Completions != 4 || *job.Spec.Parallelism != 4 || pod.Spec.RestartPolicy != corev1.RestartPolicyNever || pod.Annotations["stormglass.dev/exit-after"] != "1m30s" {
		t.Errorf("job %+v", job.Spec)
	}
	if removed := s.requests("DELETE"); removed[len(removed)-1].path != batch+"cronjobs/sync" {
		t.Errorf("deleted %+v", removed)
	}
}

func TestMetricsOfEachWorkload(t *testing.T) {
	r := prometheus.NewRegistry()
	w, err := New(&rest.Config{Host: "http://127.0.0.1:1"}, Options{Namespace: "ns", Labels: map[string]string{"run": "r"}, Registerer: r})
	if err != nil {
		t.Fatal(err)
	}
	w.change(func(tr *tracker) {
		s := story{tracker: tr, t: t, at: time.Unix(0, 0)}
		s.deploys(scenario.StatefulSet, "db", 2)
		s.deploys(scenario.Job, "batch", 1)
		s.pod("db-0", "n0", of("db"))
		s.nodesFailed(s.at, []string{"n0"})
		s.pod("db-0", "n0", of("db"), terminating)
	})
	want := `
# HELP stormglass_workload_jobs Jobs so far, by state; waiting: enough pods have succeeded, but the Job is not complete yet.
# TYPE stormglass_workload_jobs gauge
stormglass_workload_jobs{kind="Job",state="active",workload="batch"} 1
stormglass_workload_jobs{kind="Job",state="complete",workload="batch"} 0
stormglass_workload_jobs{kind="Job",state="failed",workload="batch"} 0
stormglass_workload_jobs{kind="Job",state="waiting",workload="batch"} 0
# HELP stormglass_workload_pods_missing Missing pods of a workload: pods that the workload needs and that are not Ready on a node that has not failed.
# TYPE stormglass_workload_pods_missing gauge
stormglass_workload_pods_missing{kind="Job",workload="batch"} 1
stormglass_workload_pods_missing{kind="StatefulSet",workload="db"} 2
# HELP stormglass_workload_pods_stuck Pods that are being deleted on nodes that have failed.
# TYPE stormglass_workload_pods_stuck gauge
stormglass_workload_pods_stuck{kind="Job",workload="batch"} 0
stormglass_workload_pods_stuck{kind="StatefulSet",workload="db"} 1
`
	if err := testutil.GatherAndCompare(r, strings.NewReader(want), "stormglass_workload_jobs", "stormglass_workload_pods_missing", "stormglass_workload_pods_stuck"); err != nil {
		t.Error(err)
	}
}
