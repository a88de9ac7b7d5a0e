package breakdown

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/auditsummary"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func twoPhases() []result.Phase {
	return []result.Phase{
		{Name: "calm", Start: noon, End: noon.Add(10 * time.Second)},
		{Name: "storm", Start: noon.Add(11 * time.Second), End: noon.Add(20 * time.Second)},
	}
}

// line returns one event as the API server writes it.
func line(user, verb, ref string, received, took time.Duration, more string) string {
	const micro = "2006-01-02T15:04:05.000000Z07:00"
	start := noon.Add(received)
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"x","stage":"ResponseComplete","requestURI":"/api/v1",`+
		`"verb":%q,"user":{"username":%q,"groups":["system:authenticated"]},"userAgent":"stormglass","objectRef":%s,"responseStatus":{"code":200},`+
		`"requestReceivedTimestamp":%q,"stageTimestamp":%q%s}`+"\n", verb, user, ref, start.Format(micro), start.Add(took).Format(micro), more)
}

const (
	us         = "stormglass-loadgen"
	configMaps = `{"resource":"configmaps","namespace":"n","name":"a","apiVersion":"v1"}`
	scale      = `{"resource":"deployments","subresource":"scale","apiGroup":"apps","apiVersion":"v1"}`
)

// write writes audit logs and returns their directory.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func read(t *testing.T, path string) *auditsummary.Audit {
	t.Helper()
	a, err := auditsummary.ReadLog(context.Background(), path, us, twoPhases())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestLogIsSortedIntoClasses(t *testing.T) {
	ms := time.Millisecond
	a := read(t, write(t, map[string]string{
		// One log rotated within the calm phase, and one of another API server.
		"kube-apiserver-0-2026-11-21T12-00-05.000.log": line(us, "get", configMaps, time.Second, 2*ms, "") + line(us, "get", configMaps, 2*time.Second, 4*ms, ""),
		"kube-apiserver-1.log": line(us, "get", configMaps, 9999*ms, 6*ms, "") + // received in the calm, ended after it
			line(us, "get", configMaps, 10500*ms, ms, "") + // between the phases
			line(us, "patch", scale, 12*time.Second, 7*ms, `,"impersonatedUser":{"username":"stormglass:tenant:green"}`),
		"kube-apiserver-0.log": line("system:kube-scheduler", "get", configMaps, 13*time.Second, time.Second, "") +
			line(us, "get", configMaps, 14*time.Second, 800*ms, `,"annotations":{"authorization.k8s.io/decision":"allow","apiserver.latency.k8s.io/etcd":"600ms","apiserver.latency.k8s.io/total":"799ms"}`) +
			line(us, "get", configMaps, 15*time.Second, 700*ms, `,"annotations":{"apiserver.latency.k8s.io/etcd":"100ms","apiserver.latency.k8s.io/apf-queue-wait":"500ms"}`) +
			line(us, "get", configMaps, 16*time.Second, -ms, "") +
			strings.Replace(line(us, "get", configMaps, 16*time.Second, ms, ""), "ResponseComplete", "ResponseStarted", 1) +
			strings.Replace(line(us, "get", configMaps, 16*time.Second, ms, ""), `"objectRef":`+configMaps+`,`, "", 1) +
			"not json\n\n{}\n" + `{"pad":"` + strings.Repeat("x", 1<<20) + `"}` + "\n" +
			line(us, "get", configMaps, 17*time.Second, 3*ms, "") +
			line(us, "get", configMaps, 18*time.Second, 3*ms, "")[:200],
		"kube-apiserver-0-2026-11-21T12-00-05.000.log.gz": "not ours to read",
	}))
	if len(a.Classes) != 3 {
		t.Fatalf("classes: %+v", a.Classes)
	}
	calm, storm, tenant := a.Classes[0], a.Classes[1], a.Classes[2]
	if calm.Phase != "calm" || calm.Verb != "get" || calm.Resource != "configmaps" || calm.Server.Count != 3 || calm.Server.Mean != .004 || calm.Slow != nil {
		t.Errorf("calm: %+v", calm)
	}
	wantSlow := &result.SlowRequests{Count: 2, Mean: .75, Layers: map[string]float64{"etcd": .35, "apf-queue-wait": .25}}
	if storm.Server.Count != 3 || storm.Server.Max != .8 || !reflect.DeepEqual(storm.Slow, wantSlow) {
		t.Errorf("storm: %+v, slow %+v", storm, storm.Slow)
	}
	if tenant.Resource != "deployments.apps/scale" || tenant.Tenant != "green" || tenant.Server.Mean != .007 {
		t.Errorf("tenant: %+v", tenant)
	}
	a.Classes = nil
	if want := (&auditsummary.Audit{Files: 3, Events: 7, Foreign: 1, Other: 2, Outside: 1, Malformed: 3, Torn: 1, Backwards: 1}); !reflect.DeepEqual(a, want) {
		t.Errorf("counts: %+v, want %+v", a, want)
	}
}

func TestUnreadableAuditLog(t *testing.T) {
	if _, err := auditsummary.ReadLog(context.Background(), filepath.Join(t.TempDir(), "audit"), us, nil); err == nil || !strings.Contains(err.Error(), "find the audit log") {
		t.Errorf("no log: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := auditsummary.ReadLog(ctx, write(t, map[string]string{"audit.log": line(us, "get", configMaps, 0, 1, "")}), us, nil); err == nil {
		t.Error("ReadLog succeeded with a canceled context")
	}
	if a := read(t, write(t, map[string]string{"audit.log": ""})); a.Events != 0 || len(a.Classes) != 0 {
		t.Errorf("an empty log: %+v", a)
	}
}

func TestSummaryIsKept(t *testing.T) {
	dir := t.TempDir()
	if a, err := auditsummary.Load(dir); a != nil || err != nil {
		t.Fatal(a, err)
	}
	saved := read(t, write(t, map[string]string{"audit.log": line(us, "get", configMaps, 0, time.Second, `,"annotations":{"apiserver.latency.k8s.io/etcd":"1s"}`)}))
	if err := rundir.WriteJSON(dir, result.AuditFile, saved); err != nil {
		t.Fatal(err)
	}
	loaded, err := auditsummary.Load(dir)
	if err != nil || !reflect.DeepEqual(saved, loaded) {
		t.Errorf("%v: saved %+v, loaded %+v", err, saved, loaded)
	}
	if err := os.WriteFile(filepath.Join(dir, result.AuditFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := auditsummary.Load(dir); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a damaged file: %v", err)
	}
}

// auditOf returns a summary of n requests of a class in phase p.
func auditOf(n int64, verb, resource, tenant string, ms float64) *auditsummary.Audit {
	return &auditsummary.Audit{Classes: []auditsummary.Class{{
		Phase: "p", Verb: verb, Resource: resource, Tenant: tenant,
		Server: result.Latency{Count: n, Mean: ms / 1e3, P99: ms / 1e2}, Slow: &result.SlowRequests{Count: 1, Mean: .6},
	}}}
}

// With the log, the server's time covers only our requests.
func TestAuditSeparatesOwnRequests(t *testing.T) {
	ours := load("w", "patch", "configmaps", 100, 1, 0, 12)
	for name, c := range map[string]struct {
		audit  *auditsummary.Audit
		others float64
		source string
		want   []string
		warn   []string
	}{
		"alone": {auditOf(100, "patch", "configmaps", "", 11), 0, "audit",
			[]string{"lag 1", "connect 0", "wire 1", "filters 0.3", "fairness 2", "admission 0.5", "etcd 4", "unexplained 4.2"}, nil},
		"in a crowd": {auditOf(100, "patch", "configmaps", "", 11), 900, "audit",
			[]string{"lag 1", "connect 0", "wire 1", "unexplained 11"}, []string{"the API server's time is not split: only 10% of 1000 such requests came from loadgen"}},
		"incomplete": {auditOf(40, "patch", "configmaps", "", 11), 0, "metrics",
			[]string{"lag 1", "connect 0", "wire 2", "filters 0.3", "fairness 2", "admission 0.5", "etcd 4", "unexplained 3.2"},
			[]string{"the audit log has 40 requests, but loadgen received 100 responses, so the log is not used"}},
		"of a tenant only": {auditOf(100, "patch", "configmaps", "green", 11), 0, "metrics",
			[]string{"lag 1", "connect 0", "wire 2", "filters 0.3", "fairness 2", "admission 0.5", "etcd 4", "unexplained 3.2"},
			[]string{"the audit log contains no such request of this run"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			p := l.phase("p", func() {
				l.busy(100)
				l.handle("PATCH", "", "configmaps", "resource", c.others, 1, 0)
			}, ours)
			r := l.split(c.audit, p)[0]
			expect(t, r, c.want...)
			warns(t, r, c.warn...)
			if r.ServerSource != c.source || (c.source == "audit") != (r.ServerP99 != nil && r.Slow != nil) {
				t.Errorf("source %q, p99 %v, slow %v", r.ServerSource, r.ServerP99, r.Slow)
			}
		})
	}
}

// Audit events do not distinguish an apply from a patch.
func TestAuditOfApplies(t *testing.T) {
	for _, together := range []bool{false, true} {
		l := newLab(t)
		loads := []result.Requests{load("a", "apply", "configmaps", 100, 0, 0, 12)}
		if together {
			loads = append(loads, load("b", "patch", "configmaps", 100, 0, 0, 12))
		}
		r := l.split(auditOf(100, "patch", "configmaps", "", 11), l.phase("p", func() {
			l.handle("APPLY", "", "configmaps", "resource", 100, 10, 0)
		}, loads...))[0]
		if together != (r.ServerSource == "metrics") {
			t.Errorf("with a patch %v: from %s", together, r.ServerSource)
		}
	}
}

// Audit events do not distinguish the variants of a list either: each row says that its
// server mean covers all of them.
func TestAuditOfVariants(t *testing.T) {
	l := newLab(t)
	cached, paged := load("mix", "list", "configmaps", 60, 0, 0, 12), load("mix", "list", "configmaps", 40, 0, 0, 14)
	cached.Variant, paged.Variant = "rv=0", "limit=500"
	rows := l.split(auditOf(100, "list", "configmaps", "", 11), l.phase("p", func() {
		l.handle("LIST", "", "configmaps", "namespace", 100, 10, 0)
	}, cached, paged))
	for i, want := range []string{"rv=0", "limit=500"} {
		if rows[i].Variant != want || rows[i].ServerSource != "audit" {
			t.Errorf("variant %q from %q, want %q from the audit log", rows[i].Variant, rows[i].ServerSource, want)
		}
		if !strings.HasPrefix(rows[i].Warnings[0], "the audit log does not separate these requests from other requests of the load, so the server's times include all of them") {
			t.Errorf("it warns %q", rows[i].Warnings)
		}
	}
}
