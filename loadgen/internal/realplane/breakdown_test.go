package realplane

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/auditsummary"
	"github.com/stormglass/stormglass/loadgen/internal/judge/breakdown"
	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

// each is the number of requests that call makes with each verb.
const each = 40

// The client, the audit log and the metrics measure the same requests. The time by metrics is at most the time by the
// audit log, because a metric is observed within the audited handler. The audited time is at most the client's time,
// because the response ends later.
func TestAuditAgreesWithMetrics(t *testing.T) {
	plane := plane.Cluster()
	if !slices.ContainsFunc(plane.Deviations, func(d control.Deviation) bool { return d.Setting == "--audit-log-path" }) {
		t.Error("the audit log is not among the plane's deviations")
	}
	config := loadConfig(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	green := tenant(t, ctx, config)

	dir := t.TempDir()
	var targets []control.ScrapeTarget
	for _, c := range plane.Components {
		targets = append(targets, c.Scrape)
	}
	recorder, err := scrape.Open(dir, targets, scrape.Options{})
	must(t, err)
	phase := result.Phase{Name: "calls"}
	phase.Start, err = recorder.ScrapeNow(ctx)
	must(t, err)
	phase.Requests = call(t, ctx, client(config).PodTemplates("default"), client(green).PodTemplates("default"))
	phase.End, err = recorder.ScrapeNow(ctx)
	must(t, err)
	must(t, recorder.Close())

	log, err := auditsummary.ReadLog(ctx, filepath.Join(plane.Dir, control.AuditLogs), control.LoadUser, []result.Phase{phase})
	must(t, err)
	if log.Foreign != 0 || log.Malformed != 0 || log.Backwards != 0 || log.Events != each*int64(len(phase.Requests)) {
		t.Errorf("the log: %+v", log)
	}
	archive, err := archive.Open(dir)
	must(t, err)
	defer archive.Close()
	rec := &rundir.Recorded{Measurements: result.Measurements{Phases: []result.Phase{phase}}, Archive: archive}
	byMetrics, err := breakdown.Split(ctx, rec)
	must(t, err)
	rec.Audit = log
	byAudit, err := breakdown.Split(ctx, rec)
	must(t, err)
	if len(byMetrics) != len(phase.Requests) || len(byAudit) != len(phase.Requests) {
		t.Fatalf("%d and %d rows of %d loads", len(byMetrics), len(byAudit), len(phase.Requests))
	}
	for i, r := range phase.Requests {
		nested(t, r, byMetrics[i], byAudit[i])
	}
}

func nested(t *testing.T, r result.Requests, metrics, audit result.Breakdown) {
	t.Helper()
	what := r.Verb + " " + r.Tenant
	if metrics.ServerMean == nil || audit.ServerMean == nil || audit.ServerSource != "audit" || audit.OurShare == nil {
		t.Errorf("%s: by metrics %+v, by audit %+v", what, metrics, audit)
		return
	}
	// Controllers list and watch every resource once, when they discover it.
	others := r.Verb == "list"
	if *audit.OurShare != 1 && !others {
		t.Errorf("%s: the run's share is %v for a resource that no other client uses", what, *audit.OurShare)
	}
	// The metrics do not distinguish the tenant's GETs from other GETs of the run.
	const tick = 2e-6 // audit times are whole microseconds
	if r.Verb != "get" && *metrics.ServerMean > *audit.ServerMean+tick {
		t.Errorf("%s: %v s by metrics, %v s by the audit log, which ends later", what, *metrics.ServerMean, *audit.ServerMean)
	}
	if *audit.ServerMean > r.Service.Mean+tick {
		t.Errorf("%s: %v s by the audit log, the client waited %v s", what, *audit.ServerMean, r.Service.Mean)
	}
	parts := map[string]float64{}
	for _, p := range audit.Parts {
		parts[p.Name] = p.Seconds
	}
	if parts[result.PartFilters] <= 0 {
		t.Errorf("%s: no time in filters: %+v", what, audit.Parts)
	}
	// The etcd calls that the API server makes for each verb. The histogram only has the sum of their durations.
	calls := map[string]string{
		"create": "1.00 create calls", "get": "1.00 get calls",
		"update": "1.00 update calls", "patch": "1.00 update calls", "delete": "1.00 delete calls per request, 1.00 get calls",
	}[r.Verb]
	if !others && !slices.ContainsFunc(audit.Parts, func(p result.BreakdownPart) bool {
		return p.Name == result.PartEtcd && p.Seconds > 0 && strings.HasPrefix(p.Note, calls)
	}) {
		t.Errorf("%s: not %q at etcd: %+v", what, calls, audit.Parts)
	}
	if _, found := parts[result.PartFairness]; !found {
		t.Errorf("%s: fairness is not known: %v", what, audit.Warnings)
	}
	// On a busy machine, no metric separates admission from fairness.
	admission, admitted := parts[result.PartAdmission]
	_, either := parts[result.PartAdmissionOrFairness]
	if reads := r.Verb == "get" || r.Verb == "list"; reads && admission > 0 || !reads && !admitted && !either {
		t.Errorf("%s: admission %v s, known: %v", what, admission, admitted)
	}
}

// call makes requests of each verb on a resource that no component watches.
func call(t *testing.T, ctx context.Context, own, green typedcorev1.PodTemplateInterface) []result.Requests {
	t.Helper()
	name := func(i int) string { return fmt.Sprintf("t-%d", i) }
	template := func(i int) *corev1.PodTemplate {
		return &corev1.PodTemplate{
			ObjectMeta: metav1.ObjectMeta{Name: name(i)},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "pause"}}},
			},
		}
	}
	get := func(from typedcorev1.PodTemplateInterface) func(int) error {
		return func(i int) error { _, err := from.Get(ctx, name(i), metav1.GetOptions{}); return err }
	}
	var all []result.Requests
	for _, step := range []struct {
		verb, tenant string
		do           func(i int) error
	}{
		{"create", "", func(i int) error { _, err := own.Create(ctx, template(i), metav1.CreateOptions{}); return err }},
		{"get", "", get(own)},
		{"get", "green", get(green)},
		{"list", "", func(int) error { _, err := own.List(ctx, metav1.ListOptions{}); return err }},
		{"update", "", func(i int) error {
			changed := template(i)
			changed.Labels = map[string]string{"a": "a"} // an update that changes nothing is not written
			_, err := own.Update(ctx, changed, metav1.UpdateOptions{})
			return err
		}},
		{"patch", "", func(i int) error {
			_, err := own.Patch(ctx, name(i), types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
			return err
		}},
		{"delete", "", func(i int) error { return own.Delete(ctx, name(i), metav1.DeleteOptions{}) }},
	} {
		all = append(all, measure(t, step.verb, step.tenant, step.do))
	}
	return all
}

// tenant makes a tenant that may read, and waits until the API server's
// authorizer knows it.
func tenant(t *testing.T, ctx context.Context, config *rest.Config) *rest.Config {
	t.Helper()
	const user = "stormglass:tenant:green"
	admin := kubernetes.NewForConfigOrDie(config)
	_, err := admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "green"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}},
	}, metav1.CreateOptions{})
	must(t, err)
	must(t, wait.PollUntilContextCancel(ctx, 20*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		review, err := admin.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{
				User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: "default", Verb: "get", Resource: "podtemplates"},
			},
		}, metav1.CreateOptions{})
		return err == nil && review.Status.Allowed, err
	}))
	as := rest.CopyConfig(config)
	as.Impersonate = rest.ImpersonationConfig{UserName: user}
	return as
}

func client(config *rest.Config) typedcorev1.CoreV1Interface {
	return kubernetes.NewForConfigOrDie(config).CoreV1()
}

func measure(t *testing.T, verb, tenant string, do func(i int) error) result.Requests {
	t.Helper()
	h := latency.New(time.Minute)
	for i := range each {
		start := time.Now()
		if err := do(i); err != nil {
			t.Fatalf("%s: %v", verb, err)
		}
		h.Record(time.Since(start))
	}
	return result.Requests{
		Load: verb, Verb: verb, Resource: "podtemplates", Tenant: tenant, Sent: each, Offered: each,
		Outcomes: map[string]int64{"200": each}, Latency: h.Latency(), Service: h.Latency(),
	}
}
