//go:build realnode

package realnode

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/planetest"
	"github.com/stormglass/stormglass/loadgen/result"
)

const workersImage = "stormglass.invalid/loadgen:1"

const divided = `apiVersion: stormglass/v1alpha1
kind: Scenario
name: divided
phases:
- name: flood
  for: 5s
  load:
  - {kind: watches, name: crowd, count: 40, rate: 100/s, objects: 4}
  - {kind: changes, name: writes, watches: crowd, rate: 20/s}
  - {kind: requests, name: reads, verb: get, rate: 100/s, objects: 8}
  - {kind: requests, name: updates, verb: update, resource: leases.coordination.k8s.io, rate: 40/s, objects: 8}
gates:
- {name: lost, objective: watch-lost, load: crowd, max: 0}
- {name: errors, objective: request-errors, max: 0}
`

// site consists of two real nodes with the workers' image, and the coordinator's program.
type site struct {
	t        *testing.T
	ctx      context.Context
	a, b     *Node
	loadgen  string
	scenario string
}

func newSite(t *testing.T) *site {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	s := &site{t: t, ctx: ctx, a: start(t, ctx, "real-a"), b: start(t, ctx, "real-b"), scenario: filepath.Join(t.TempDir(), "divided.yaml")}
	var err error
	s.loadgen, err = planetest.Loadgen(t.TempDir())
	must(t, err)
	must(t, os.WriteFile(s.scenario, []byte(divided), 0o600))
	for _, n := range []*Node{s.a, s.b} {
		must(t, n.LoadImage(ctx, s.loadgen, workersImage))
	}
	return s
}

// coordinator is a run in progress.
type coordinator struct {
	site *site
	cmd  *exec.Cmd
	out  *bufio.Scanner
	dir  string
	said []string
}

func (s *site) run(workers int, args ...string) *coordinator {
	s.t.Helper()
	r := &coordinator{site: s, dir: filepath.Join(planetest.Dir(s.t), "run")}
	r.cmd = exec.CommandContext(s.ctx, s.loadgen, append([]string{
		"run", s.scenario, "--out", r.dir, "--kubeconfig", plane.Cluster().Kubeconfigs["admin"], "--yes",
		"--workers", fmt.Sprint(workers), "--workers-resources", "cpu=100m,memory=256Mi", "--workers-within", "1m",
	}, args...)...)
	out, err := r.cmd.StderrPipe()
	must(s.t, err)
	r.out = bufio.NewScanner(out)
	must(s.t, r.cmd.Start())
	s.t.Cleanup(func() {
		if r.cmd.ProcessState == nil {
			_ = r.cmd.Process.Kill() // the process may have ended
			_ = r.cmd.Wait()
		}
	})
	return r
}

// await waits until the run prints a line that contains words.
func (r *coordinator) await(words string) {
	r.site.t.Helper()
	for r.out.Scan() {
		r.said = append(r.said, r.out.Text())
		if strings.Contains(r.out.Text(), words) {
			return
		}
	}
	r.site.t.Fatalf("the run did not print %q, but\n%s", words, strings.Join(r.said, "\n"))
}

// drain reads the output to its end.
func (r *coordinator) drain() {
	for r.out.Scan() {
		r.said = append(r.said, r.out.Text())
	}
}

// end waits until the run ends. It checks the exit code, and that the run printed the given words.
func (r *coordinator) end(code int, words ...string) {
	r.site.t.Helper()
	r.drain()
	_ = r.cmd.Wait() // the exit code is checked below
	said := strings.Join(r.said, "\n")
	if got := r.cmd.ProcessState.ExitCode(); got != code {
		r.site.t.Errorf("exit code %d, want %d\n%s", got, code, said)
	}
	for _, w := range words {
		if !strings.Contains(said, w) {
			r.site.t.Errorf("the run did not print %q:\n%s", w, said)
		}
	}
}

// endWhole waits until a run ends, and checks that it passed. If the machine is too busy to measure, the run has no
// verdict.
func (r *coordinator) endWhole(words ...string) {
	r.site.t.Helper()
	r.drain()
	res := r.result()
	unjudged := len(res.Measurements.Generator.Saturated) > 0
	for _, g := range res.Gates {
		unjudged = unjudged || planetest.Unjudged(res, g)
	}
	if unjudged {
		r.end(exitcode.NoData, words...)
		return
	}
	r.end(exitcode.Pass, words...)
}

func (r *coordinator) result() (res result.Result) {
	r.site.t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, result.ResultFile))
	must(r.site.t, err)
	must(r.site.t, json.Unmarshal(text, &res))
	return res
}

// id returns the run's ID, which it reads from the run's namespaces.
func (s *site) id() string {
	s.t.Helper()
	all, err := s.a.client.CoreV1().Namespaces().List(s.ctx, metav1.ListOptions{LabelSelector: "stormglass.dev/run"})
	must(s.t, err)
	if len(all.Items) == 0 {
		s.t.Fatal("the run has no namespace")
	}
	return all.Items[0].Labels["stormglass.dev/run"]
}

// pods returns the existing pods of workers, by node.
func (s *site) pods() map[string][]corev1.Pod {
	s.t.Helper()
	all, err := s.a.client.CoreV1().Pods("").List(s.ctx, metav1.ListOptions{LabelSelector: "batch.kubernetes.io/job-name,stormglass.dev/run"})
	must(s.t, err)
	on := map[string][]corev1.Pod{}
	for _, p := range all.Items {
		on[p.Spec.NodeName] = append(on[p.Spec.NodeName], p)
	}
	return on
}

// wantNothing fails the test if namespaces of a run still exist.
func (s *site) wantNothing() {
	s.t.Helper()
	all, err := s.a.client.CoreV1().Namespaces().List(s.ctx, metav1.ListOptions{LabelSelector: "stormglass.dev/run"})
	must(s.t, err)
	for _, n := range all.Items {
		s.t.Errorf("namespace %s still exists", n.Name)
	}
}

// One, two and four workers on two real nodes send the same load and measure the same results, whether they connect to
// the coordinator or the coordinator connects to them. Nothing of them is left behind.
func TestWorkersOfAJob(t *testing.T) {
	s := newSite(t)
	for name, c := range map[string]struct {
		workers int
		args    []string
	}{
		"one":  {1, nil},
		"two":  {2, []string{"--workers-listen", "0.0.0.0:0", "--workers-advertise", s.a.HostAddress().String()}},
		"four": {4, nil},
	} {
		t.Run(name, func(t *testing.T) {
			s := *s
			s.t = t
			if name == "two" {
				must(t, onlyOn(&s, s.a)) // only pods of s.a can reach this machine at that address
				defer func() { must(t, onlyOn(&s, s.a, s.b)) }()
			}
			r := s.run(c.workers, append(c.args, "--image", workersImage)...)
			r.await("phase flood")
			on := s.pods()
			if c.workers == 4 && (len(on["real-a"]) != 2 || len(on["real-b"]) != 2) {
				t.Errorf("%d pods on one node and %d on the other, want 2 and 2", len(on["real-a"]), len(on["real-b"]))
			}
			r.endWhole(fmt.Sprintf("starting workers: a Job of %d pods", c.workers))
			m := r.result().Measurements
			if len(m.Workers) != c.workers {
				t.Fatalf("workers %+v", m.Workers)
			}
			p := m.Phases[0]
			rates := map[string]float64{"reads": 100, "updates": 40, "writes": 20}
			for _, of := range p.Requests {
				if rate := rates[of.Load]; math.Abs(of.OfferedRate/rate-1) > 0.02 || of.Succeeded != of.Sent {
					t.Errorf("load %s: %d requests offered at %v/s, want %v/s; %d sent, %d succeeded", of.Load, of.Offered, of.OfferedRate, rate, of.Sent, of.Succeeded)
				}
			}
			if w := p.Watches[0]; w.Open != 40 || w.Delivered != w.Expected || w.Delivered < 40*80 {
				t.Errorf("watches %+v", w)
			}
			for _, of := range p.Requests {
				t.Logf("%d workers: %s: %d sent, %.1f/s, p50 %.1f ms, p99 %.1f ms", c.workers, of.Load, of.Sent, of.AchievedRate, 1000*of.Latency.P50, 1000*of.Latency.P99)
			}
			t.Logf("%d workers: %d of %d deliveries, p50 %.1f ms, p99 %.1f ms", c.workers, p.Watches[0].Delivered, p.Watches[0].Expected, 1000*p.Watches[0].Delivery.P50, 1000*p.Watches[0].Delivery.P99)
			for _, w := range m.Workers {
				t.Logf("%d workers: %s: clock offset %+.3f ms ± %.3f ms", c.workers, w.Name, 1000*w.ClockOffset, 1000*w.ClockUncertainty)
			}
			s.wantNothing()
		})
	}
}

// onlyOn makes all nodes except the given ones unschedulable.
func onlyOn(s *site, nodes ...*Node) error {
	var errs []error
	for _, n := range []*Node{s.a, s.b} {
		cordoned := "true"
		for _, open := range nodes {
			if open == n {
				cordoned = "false"
			}
		}
		_, err := s.a.client.CoreV1().Nodes().Patch(s.ctx, n.Name, types.MergePatchType, []byte(`{"spec":{"unschedulable":`+cordoned+`}}`), metav1.PatchOptions{})
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// A run ends immediately if the pod of a worker is killed or its node is drained. The run has no verdict, and names the
// worker.
func TestLostPodsEndTheRun(t *testing.T) {
	s := newSite(t)
	for name, lose := range map[string]func(*site){
		"killed": func(s *site) {
			p := s.pods()["real-b"][0]
			must(s.t, s.a.client.CoreV1().Pods(p.Namespace).Delete(s.ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}))
		},
		"drained": func(s *site) {
			must(s.t, onlyOn(s, s.a))
			for _, p := range s.pods()["real-b"] {
				must(s.t, s.a.client.CoreV1().Pods(p.Namespace).EvictV1(s.ctx, &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Name: p.Name, Namespace: p.Namespace}}))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := *s
			s.t = t
			must(t, onlyOn(&s, s.a, s.b))
			r := s.run(2, "--image", workersImage, "--set", "phases.flood.for=10m")
			r.await("phase flood")
			lost := s.pods()["real-b"][0]
			index := lost.Annotations["batch.kubernetes.io/job-completion-index"]
			lose(&s)
			r.end(exitcode.NoData, "worker "+index+" ("+lost.Spec.Hostname+"/")
			if res := r.result(); len(res.Run.LostWorkers) != 1 {
				t.Errorf("lost workers %q, want one", res.Run.LostWorkers)
			}
			s.wantNothing()
		})
	}
}

// Workers end by themselves after their coordinator was killed. They do not affect the next run, and `loadgen cleanup`
// removes what the first run left behind.
func TestRestartedCoordinator(t *testing.T) {
	s := newSite(t)
	r := s.run(2, "--image", workersImage, "--set", "phases.flood.for=10m")
	r.await("phase flood")
	first := s.id()
	must(t, r.cmd.Process.Kill())
	_ = r.cmd.Wait() // the process was killed
	poll(t, s.ctx, "the workers end", func() bool {
		for _, pods := range s.pods() {
			for _, p := range pods {
				if p.Status.Phase == corev1.PodRunning {
					return false
				}
			}
		}
		return true
	})
	again := s.run(2, "--image", workersImage)
	again.endWhole()
	out, err := exec.CommandContext(s.ctx, s.loadgen, "cleanup", "--kubeconfig", plane.Cluster().Kubeconfigs["admin"], "--yes", "--run", first).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.wantNothing()
}

// If pods of workers cannot run, one line names the object and the remedy, and nothing is left behind.
func TestWorkersThatDoNotStart(t *testing.T) {
	s := newSite(t)
	other, err := BuildContainer(s.ctx, t.TempDir())
	must(t, err)
	for _, n := range []*Node{s.a, s.b} {
		must(t, n.LoadImage(s.ctx, other, image))
	}
	const quota = "small"
	_, err = s.a.client.CoreV1().Namespaces().Create(s.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: quota}}, metav1.CreateOptions{})
	must(t, err)
	_, err = s.a.client.CoreV1().ResourceQuotas(quota).Create(s.ctx, &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "one"}, Spec: corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("1")}},
	}, metav1.CreateOptions{})
	must(t, err)
	poll(t, s.ctx, "the quota is active", func() bool {
		q, err := s.a.client.CoreV1().ResourceQuotas(quota).Get(s.ctx, "one", metav1.GetOptions{})
		must(t, err)
		return len(q.Status.Hard) > 0
	})
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"no such image": {[]string{"--image", "stormglass.invalid/none:1"}, []string{"worker ", "did not start: pod ", "cannot run image stormglass.invalid/none:1: ", "(with --image, name an image that the nodes can pull"}},
		"no loadgen":    {[]string{"--image", image, "--workers-within", "20s"}, []string{"did not join", " runs, but no worker answers at port 7443: ", "(is loadgen the entry point of image " + image}},
		"a quota":       {[]string{"--image", workersImage, "--workers-namespace", quota}, []string{"job " + quota + "/stormglass-workers-", "cannot create its pods: ", "exceeded quota", "(raise the quota"}},
		"no namespace":  {[]string{"--image", workersImage, "--workers-namespace", "nowhere"}, []string{`namespaces "nowhere" not found`, "(create the namespace first"}},
		"too large":     {[]string{"--image", workersImage, "--workers-resources", "cpu=1000", "--workers-within", "5s"}, []string{"did not join", "is not scheduled: ", "Insufficient cpu"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := *s
			s.t = t
			r := s.run(2, c.args...)
			r.end(exitcode.Environment, c.want...)
			s.wantNothing()
			if _, err := os.Stat(r.dir); !os.IsNotExist(err) {
				t.Errorf("the run directory still exists: %v", err)
			}
			jobs, err := s.a.client.BatchV1().Jobs(quota).List(s.ctx, metav1.ListOptions{})
			must(t, err)
			if len(jobs.Items) > 0 {
				t.Errorf("%d Jobs still exist", len(jobs.Items))
			}
		})
	}
	must(t, s.a.client.CoreV1().Namespaces().Delete(s.ctx, quota, metav1.DeleteOptions{}))
	poll(t, s.ctx, "the namespace goes", func() bool {
		_, err := s.a.client.CoreV1().Namespaces().Get(s.ctx, quota, metav1.GetOptions{})
		return apierrors.IsNotFound(err)
	})
}
