//go:build realnode

package realnode

import (
	"bytes"
	"os/exec"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/internal/exitcode"
)

// The manifests from `run --render` run the scenario in the cluster. Pod Security admits the pods of the run and of its
// workers under the profile "restricted". The Job completes if all gates pass, fails if one does not, and reports the
// verdict. Nothing of the run is left behind.
func TestRunInTheCluster(t *testing.T) {
	s := newSite(t)
	must(t, onlyOn(s, s.a)) // pods of different nodes cannot connect to each other
	for name, c := range map[string]struct {
		args    []string
		ends    batchv1.JobConditionType
		code    int32
		verdict string
	}{
		"pass": {nil, batchv1.JobComplete, exitcode.Pass, "PASS"},
		"fail": {[]string{"--set", "gates.errors.objective=request-latency", "--set", "gates.errors.max=100us"}, batchv1.JobFailed, exitcode.Fail, "FAIL"},
	} {
		t.Run(name, func(t *testing.T) {
			s := *s
			s.t = t
			args := append([]string{"run", s.scenario, "--workers", "2", "--image", workersImage, "--workers-resources", "cpu=100m,memory=256Mi", "--workers-within", "1m", "--render"}, c.args...)
			text, err := exec.CommandContext(s.ctx, s.loadgen, args...).Output()
			must(t, err)
			s.kubectl(text, "apply", "-f", "-")
			const namespace, job = "stormglass-run", "stormglass-divided"
			var end batchv1.JobConditionType
			poll(t, s.ctx, "the Job ends", func() bool {
				j, err := s.a.client.BatchV1().Jobs(namespace).Get(s.ctx, job, metav1.GetOptions{})
				must(t, err)
				for _, condition := range j.Status.Conditions {
					if condition.Status == corev1.ConditionTrue && (condition.Type == batchv1.JobComplete || condition.Type == batchv1.JobFailed) {
						end = condition.Type
					}
				}
				return end != ""
			})
			pods, err := s.a.client.CoreV1().Pods(namespace).List(s.ctx, metav1.ListOptions{LabelSelector: "job-name=" + job})
			must(t, err)
			if len(pods.Items) != 1 {
				t.Fatalf("%d pods", len(pods.Items))
			}
			ended := pods.Items[0].Status.ContainerStatuses[0].State.Terminated
			if ended.ExitCode == exitcode.NoData && strings.Contains(ended.Message, "generator saturated") {
				c.ends, c.code, c.verdict = batchv1.JobFailed, exitcode.NoData, "NO DATA" // this machine is busy
			}
			if end != c.ends || ended.ExitCode != c.code || !strings.Contains(ended.Message, c.verdict) {
				t.Errorf("Job condition %s, want %s; its pod ended with\n%+v", end, c.ends, ended)
			}
			s.wantNothing()
			jobs, err := s.a.client.BatchV1().Jobs(namespace).List(s.ctx, metav1.ListOptions{})
			must(t, err)
			if len(jobs.Items) != 1 {
				t.Errorf("%d Jobs", len(jobs.Items))
			}
			s.kubectl(text, "delete", "--wait", "-f", "-")
			poll(t, s.ctx, "the namespace goes", func() bool {
				_, err := s.a.client.CoreV1().Namespaces().Get(s.ctx, namespace, metav1.GetOptions{})
				return apierrors.IsNotFound(err)
			})
		})
	}
}

// kubectl runs kubectl with the given arguments and standard input.
func (s *site) kubectl(stdin []byte, args ...string) {
	s.t.Helper()
	cmd := exec.CommandContext(s.ctx, plane.Binary, append([]string{"--kubeconfig", plane.Cluster().Kubeconfigs["admin"]}, args...)...)
	cmd.Args[0] = "kubectl" // the binary acts as kubectl if it has this name
	cmd.Stdin = bytes.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		s.t.Fatalf("kubectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}
