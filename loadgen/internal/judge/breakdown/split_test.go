package breakdown

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

const patchConfigMaps = `operation="update",group="",resource="configmaps"`

// busy adds the observations of a server that handles n patches of configmaps: 10 ms
// each, with 2 ms waiting, 0.3 in filters, 0.5 in admission and 4 in etcd.
func (l *lab) busy(n float64) {
	l.handle("PATCH", "", "configmaps", "resource", n, 10, 2)
	l.observe(famFilter, `filter="authentication"`, n, .0001)
	l.observe(famFilter, `filter="authorization"`, n, .0002)
	l.observe(famFilter, `filter="priorityandfairness"`, n, .0021)
	l.observe(famAdmission, `type="admit",operation="UPDATE",rejected="false"`, n, .0003)
	l.observe(famAdmission, `type="validate",operation="UPDATE",rejected="false"`, n, .0002)
	l.observe(famEtcd, patchConfigMaps, n, .004)
}

func TestEveryPartIsFound(t *testing.T) {
	l := newLab(t)
	l.handle("PATCH", "", "configmaps", "resource", 5000, 90, 0) // before the phases: must not count
	l.observe(famEtcd, patchConfigMaps, 5000, .08)
	first := l.phase("calm", func() { l.busy(100) }, load("writer", "patch", "configmaps", 100, 1, .5, 12))
	second := l.phase("storm", func() { l.busy(300) }, load("writer", "patch", "configmaps", 300, 4, .5, 12))
	rows := l.split(nil, first, second)
	if len(rows) != 2 || rows[0].Phase != "calm" || rows[1].Phase != "storm" {
		t.Fatalf("rows: %+v", rows)
	}
	expect(t, rows[0], "lag 1", "connect 0.5", "wire 2", "filters 0.3", "fairness 2", "admission 0.5", "etcd 4", "unexplained 3.2")
	expect(t, rows[1], "lag 4", "connect 0.5", "wire 2", "filters 0.3", "fairness 2", "admission 0.5", "etcd 4", "unexplained 3.2")
	for _, r := range rows {
		warns(t, r)
		if r.OurShare == nil || *r.OurShare != 1 || r.ServerSource != "metrics" || r.ServerP99 != nil || r.ClientP99 <= r.ClientMean {
			t.Errorf("share %v, source %q, server p99 %v, p99 %v", r.OurShare, r.ServerSource, r.ServerP99, r.ClientP99)
		}
	}
}

// Time that the server cannot attribute stays unexplained and is not spread over the
// parts.
func TestUnexplainedTimeStaysUnexplained(t *testing.T) {
	l := newLab(t)
	p := l.phase("p", func() {
		l.busy(100)
		l.handle("PATCH", "", "configmaps", "resource", 100, 190, 0) // a starved CPU
	}, load("w", "patch", "configmaps", 200, 0, 0, 101))
	r := l.split(nil, p)[0]
	if r.Unexplained < .090 {
		t.Errorf("of 101 ms only %.1f ms are unexplained: %+v", r.Unexplained*1e3, r.Parts)
	}
}

func TestOthersRequests(t *testing.T) {
	ours := load("w", "patch", "configmaps", 100, 1, 0, 12)
	for name, c := range map[string]struct {
		others, ms float64
		want       []string
		warn       []string
	}{
		"few": {5, 10, []string{"lag 1", "connect 0", "wire 2", "filters 0.2857", "fairness 1.905", "admission 0.4762", "etcd 3.81", "unexplained 3.524"},
			[]string{"the server's mean times include requests of other clients (4.8%)"}},
		"few and slow": {10, 100, []string{"lag 1", "connect 0", "wire 0", "filters 0.2727", "fairness 1.818", "admission 0.4545", "etcd 3.636", "unexplained 5.818"},
			[]string{"requests of other clients (9.1%)", "the computed wire time is negative and shown as 0: the server's mean includes other, slower requests, or"}},
		"as many as ours": {100, 10, []string{"lag 1", "connect 0", "unexplained 12"},
			[]string{"not split: only 50% of 200 such requests came from loadgen"}},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			p := l.phase("p", func() {
				l.busy(100)
				l.observe(famFilter, `filter="authentication"`, c.others, 0)
				l.observe(famFilter, `filter="authorization"`, c.others, 0)
				l.handle("PATCH", "", "configmaps", "resource", c.others, c.ms, 0)
			}, ours)
			r := l.split(nil, p)[0]
			expect(t, r, c.want...)
			warns(t, r, c.warn...)
		})
	}
}

func TestMissingSplitIsExplained(t *testing.T) {
	ours := load("w", "patch", "configmaps", 100, 1, 2, 12)
	for name, c := range map[string]struct {
		storm func(l *lab)
		warn  string
	}{
		"restarted":         {func(l *lab) { l.busy(100); l.api.Restart() }, "kube-apiserver-0 restarted in p"},
		"not scraped":       {func(l *lab) { l.api.SetDown(true) }, "kube-apiserver-0 was not scraped at the boundaries of p"},
		"nothing recorded":  {func(*lab) {}, famRequest + " was not recorded"},
		"another resource":  {func(l *lab) { l.handle("PATCH", "", "secrets", "resource", 100, 10, 0) }, "the API servers' metrics count no such request"},
		"half not scraped":  {func(l *lab) { l.busy(50) }, "the API servers' metrics count only 50 of loadgen's 100 requests, because not all API servers were scraped"},
		"a group's own one": {func(l *lab) { l.handle("PATCH", "example.com", "configmaps", "resource", 100, 10, 0) }, "the API servers' metrics count no such request"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			r := l.split(nil, l.phase("p", func() { c.storm(l) }, ours))[0]
			expect(t, r, "lag 1", "connect 2", "unexplained 12")
			warns(t, r, c.warn)
			if r.ServerMean != nil || r.UnexplainedNote == "" {
				t.Errorf("server mean %v, note %q", r.ServerMean, r.UnexplainedNote)
			}
		})
	}
	rows, err := Split(context.Background(), &rundir.Recorded{Measurements: result.Measurements{Phases: []result.Phase{{Name: "p", Requests: []result.Requests{ours}}}}})
	if err != nil || len(rows) != 1 {
		t.Fatal(rows, err)
	}
	warns(t, rows[0], "not split: there is no archive of metrics")
}

// A restart by a fault is not excused, because the counts of the ended process are lost. The result names the fault.
func TestRestartNamesItsFault(t *testing.T) {
	ours := load("w", "patch", "configmaps", 100, 1, 2, 12)
	for name, c := range map[string]struct {
		storm func(l *lab)
		on    string
		warn  string
	}{
		"killed":           {func(l *lab) { l.api.Restart(); l.busy(100) }, "kube-apiserver-0", "kube-apiserver-0 restarted in p (kill)"},
		"another's kill":   {func(l *lab) { l.api.Restart(); l.busy(100) }, "kube-apiserver-1", "kube-apiserver-0 restarted in p"},
		"not back by then": {func(l *lab) { l.busy(100); l.api.SetDown(true) }, "kube-apiserver-0", "kube-apiserver-0 was not scraped at the boundaries of p (kill)"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			p := l.phase("p", func() { c.storm(l) }, ours)
			rows, err := Split(t.Context(), &rundir.Recorded{
				Measurements: result.Measurements{Phases: []result.Phase{p}}, Archive: l.Archive(),
				Timeline: []result.Event{
					{Time: p.Start, Kind: result.EventFaultBegin, Name: "kill", Fault: "1", On: []string{c.on}},
					{Time: p.End, Kind: result.EventFaultEnd, Name: "kill", Fault: "1"},
				},
			})
			if err != nil || len(rows) != 1 {
				t.Fatal(rows, err)
			}
			if want := []string{"not split: " + c.warn}; !slices.Equal(rows[0].Warnings, want) {
				t.Errorf("warnings = %q, want %q", rows[0].Warnings, want)
			}
		})
	}
}

// Requests that no handler saw count as the client's time, not the server's.
func TestRefusedRequests(t *testing.T) {
	ours := load("w", "patch", "configmaps", 200, 0, 0, 8)
	ours.Outcomes = map[string]int64{"200": 90, "409": 10, "429": 60, "reset": 40}
	l := newLab(t)
	r := l.split(nil, l.phase("p", func() { l.busy(100) }, ours))[0]
	// A hundred requests of 10 ms are 5 ms for each of the 200 requests that were sent.
	expect(t, r, "lag 0", "connect 0", "wire 3", "filters 0.15", "fairness 1", "admission 0.25", "etcd 2", "unexplained 1.6")
	if note := r.Parts[2].Note; !strings.Contains(note, "100 requests that did not reach a handler") {
		t.Errorf("note of wire = %q", note)
	}
}

func TestReads(t *testing.T) {
	pages := load("pager", "list", "secrets", 50, 0, 0, 30)
	pages.Pages = 200
	l := newLab(t)
	p := l.phase("p", func() {
		l.handle("GET", "", "configmaps", "resource", 100, 2, 0)
		l.observe(famEtcd, `operation="get",group="",resource="configmaps"`, 100, .001)
		l.handle("LIST", "apps", "deployments", "namespace", 30, 20, 0)
		l.handle("LIST", "apps", "deployments", "cluster", 10, 20, 0)
		l.observe(famEtcd, `operation="getCurrentResourceVersion",group="apps",resource="deployments"`, 40, .001)
		l.observe(famEtcd, `operation="listOnlyKeys",group="apps",resource="deployments"`, 40, 9) // counts objects
		l.observe(famReadWait, `group="apps",resource="deployments"`, 20, .008)
		l.handle("LIST", "", "secrets", "namespace", 200, 5, 0)
		l.handle("GET", "", "nodes", "resource", 10, 1, 0)
		l.observe(famReadWait, `group="",resource="configmaps"`, 50, .9) // of watches: the GETs went to etcd
		l.observe(famReadWait, `group="",resource="nodes"`, 5, .0004)
	}, load("reader", "get", "configmaps", 100, 0, 0, 3), load("lister", "list", "deployments.apps", 40, 0, 0, 25), pages,
		load("cached", "get", "nodes", 10, 0, 0, 2))
	rows := l.split(nil, p)
	expect(t, rows[0], "lag 0", "connect 0", "wire 1", "fairness 0", "etcd 1", "unexplained 1")
	expect(t, rows[1], "lag 0", "connect 0", "wire 5", "fairness 0", "etcd 1", "cache 4", "unexplained 15")
	expect(t, rows[2], "lag 0", "connect 0", "wire 10", "fairness 0", "etcd 0", "unexplained 20")
	expect(t, rows[3], "lag 0", "connect 0", "wire 1", "fairness 0", "etcd 0", "cache 0.2", "unexplained 0.8")
	if note := rows[3].Parts[4].Note; !strings.Contains(note, "no call") {
		t.Errorf("note of etcd = %q", note)
	}
	for _, r := range rows {
		warns(t, r, famFilter+" was not recorded")
	}
}

// Calls to etcd that several verbs make are shared between them, and a note says so.
func TestSharedOperations(t *testing.T) {
	l := newLab(t)
	p := l.phase("p", func() {
		l.handle("PUT", "", "configmaps", "resource", 100, 8, 0)
		l.handle("APPLY", "", "configmaps", "resource", 100, 12, 0)
		l.handle("DELETE", "", "configmaps", "resource", 50, 6, 0)
		l.handle("DELETE", "", "configmaps", "namespace", 50, 600, 0) // deletions of collections, by other clients
		l.observe(famEtcd, patchConfigMaps, 200, .005)
		l.observe(famEtcd, `operation="get",group="",resource="configmaps"`, 230, .003) // one for each DELETE and GET, and 30 retries of updates
		l.handle("GET", "", "configmaps", "resource", 100, 4, 0)
		l.observe(famEtcd, `operation="delete",group="",resource="configmaps"`, 100, .002)
		l.observe(famAdmission, `type="admit",operation="UPDATE",rejected="false"`, 200, .001)
		l.observe(famAdmission, `type="admit",operation="DELETE",rejected="false"`, 50, .001)
	}, load("u", "update", "configmaps", 100, 0, 0, 10), load("a", "apply", "configmaps", 60, 0, 0, 14),
		load("b", "apply", "configmaps", 40, 0, 0, 20), load("d", "delete", "configmaps", 50, 0, 0, 7), load("g", "get", "configmaps", 100, 0, 0, 5))
	rows := l.split(nil, p)
	expect(t, rows[0], "lag 0", "connect 0", "wire 2", "fairness 0", "admission 1", "etcd 5.45", "unexplained 1.55")
	expect(t, rows[1], "lag 0", "connect 0", "wire 2", "fairness 0", "admission 1", "etcd 5.45", "unexplained 5.55")
	expect(t, rows[3], "lag 0", "connect 0", "wire 1", "fairness 0", "admission 0.5", "etcd 5", "unexplained 0.5")
	expect(t, rows[4], "lag 0", "connect 0", "wire 1", "fairness 0", "etcd 3", "unexplained 1")
	if note := rows[0].Parts[5].Note; !strings.HasPrefix(note, "0.15 get calls per request, 1.00 update calls per request; requests with other verbs (APPLY, DELETE, DELETECOLLECTION, GET) make the same calls; ") {
		t.Errorf("etcd's note is %q", note)
	}
	if note := rows[0].Parts[4].Note; !strings.Contains(note, "50% of all UPDATE requests have this verb and resource") {
		t.Errorf("note of admission = %q", note)
	}
	for other, r := range map[string]result.Breakdown{"b": rows[1], "a": rows[2]} {
		warns(t, r, "the API server's metrics do not separate these requests from load "+other+", so the server's times include all of them", famFilter)
	}
}

// The deletion of a collection is a list, and then a read and a delete of each object.
func TestDeletionsOfCollections(t *testing.T) {
	l := newLab(t)
	p := l.phase("p", func() {
		l.handle("DELETE", "", "configmaps", "namespace", 8, 300, 2)
		l.handle("DELETE", "", "configmaps", "cluster", 2, 300, 2)
		l.handle("DELETE", "", "configmaps", "resource", 30, 20, 0)
		l.handle("POST", "", "configmaps", "resource", 200, 5, 0) // the objects are created again
		l.observe(famEtcd, `operation="getCurrentResourceVersion",group="",resource="configmaps"`, 10, .001)
		l.observe(famEtcd, `operation="get",group="",resource="configmaps"`, 230, .003)
		l.observe(famEtcd, `operation="delete",group="",resource="configmaps"`, 230, .004)
		l.observe(famEtcd, `operation="create",group="",resource="configmaps"`, 200, .002)
		l.observe(famReadWait, `group="",resource="configmaps"`, 10, .005)
		l.observe(famAdmission, `type="admit",operation="DELETE",rejected="false"`, 40, .001)
		l.observe(famAdmission, `type="validate",operation="DELETE",rejected="false"`, 230, .0005)
	}, load("c", "deletecollection", "configmaps", 10, 0, 0, 305), load("d", "delete", "configmaps", 30, 0, 0, 21))
	rows := l.split(nil, p)
	expect(t, rows[0], "lag 0", "connect 0", "wire 5", "fairness 2", "admission 3.875", "etcd 141", "cache 5", "unexplained 148.1")
	expect(t, rows[1], "lag 0", "connect 0", "wire 1", "fairness 0", "admission 3.875", "etcd 7", "unexplained 9.125")
	if note := rows[0].Parts[5].Note; !strings.HasPrefix(note, "20.00 delete calls per request, 20.00 get calls per request, 1.00 getCurrentResourceVersion calls per request; requests with other verbs (DELETE) make the same calls; ") {
		t.Errorf("etcd's note is %q", note)
	}
	for _, r := range rows {
		warns(t, r, famFilter+" was not recorded")
	}

	// Graceful deletions are updates, as are patches of the status. The reads belong to
	// the collections.
	l = newLab(t)
	p = l.phase("q", func() {
		l.handle("DELETE", "", "pods", "namespace", 10, 100, 0)
		l.handle("PATCH", "", "pods", "resource", 100, 5, 0)
		l.observe(famEtcd, `operation="get",group="",resource="pods"`, 200, .001)
		l.observe(famEtcd, `operation="update",group="",resource="pods"`, 300, .002)
	}, load("c", "deletecollection", "pods", 10, 0, 0, 100))
	r := l.split(nil, p)[0]
	i := slices.IndexFunc(r.Parts, func(p result.BreakdownPart) bool { return p.Name == result.PartEtcd })
	if i < 0 || math.Abs(r.Parts[i].Seconds-.02) > 1e-9 {
		t.Errorf("of pods: %+v", r.Parts)
	}
}

func TestWebhooks(t *testing.T) {
	l := newLab(t)
	p := l.phase("p", func() {
		// 10 ms. Of these, 5 ms are not the server's time: 3 in webhooks, 2 waiting.
		l.handle("POST", "", "configmaps", "resource", 100, 10, 5)
		l.observe(famAdmission, `type="admit",operation="CREATE",rejected="false"`, 100, .004)
		l.observe(famWebhook, `name="x.example.com",type="admit",operation="CREATE",rejected="false"`, 100, .003)
		l.observe(famEtcd, `operation="create",group="",resource="configmaps"`, 100, .002)
	}, load("c", "create", "configmaps", 100, 0, 0, 11))
	r := l.split(nil, p)[0]
	expect(t, r, "lag 0", "connect 0", "wire 1", "fairness 2", "admission 4", "etcd 2", "unexplained 2")
	if !slices.ContainsFunc(r.Parts, func(p result.BreakdownPart) bool { return strings.Contains(p.Note, "webhooks took ") }) {
		t.Errorf("nothing says that webhooks ran: %+v", r.Parts)
	}
}

// Measured changes count as requests. A load without requests has no row.
func TestChangesAndSilentLoads(t *testing.T) {
	l := newLab(t)
	p := l.phase("p", func() { l.busy(100) }, load("silent", "get", "configmaps", 0, 0, 0, 0))
	p.Changes = []result.Changes{{Requests: load("news", "patch", "configmaps", 100, 0, 0, 12)}}
	rows := l.split(nil, p)
	if len(rows) != 1 || rows[0].Load != "news" {
		t.Fatalf("rows: %+v", rows)
	}
	expect(t, rows[0], "lag 0", "connect 0", "wire 2", "filters 0.3", "fairness 2", "admission 0.5", "etcd 4", "unexplained 3.2")
}

// A rebuilt report has the same numbers to the last bit, although these sums run over maps.
func TestSumsAreReproducible(t *testing.T) {
	w := window{server: server{families: map[string][]series{}}}
	for i := range 12 {
		labels := map[string]string{"verb": "PUT", "resource": fmt.Sprint("other", i), "scope": "resource"}
		seconds := 1.1 + float64(i)/7
		w.families[famRequest] = append(w.families[famRequest], series{labels, total{7 * seconds, 7}})
		w.families[famSLI] = append(w.families[famSLI], series{labels, total{seconds, 7}})
		webhook := map[string]string{"operation": "UPDATE", "name": fmt.Sprint("policy", i), "type": "validating"}
		w.families[famWebhook] = append(w.families[famWebhook], series{webhook, total{seconds / 3, 7}})
	}
	own := map[string]string{"verb": "PUT", "resource": "configmaps", "scope": "resource"}
	w.families[famSLI] = append(w.families[famSLI], series{own, total{1, 1}})
	w.families[famRequest] = append(w.families[famRequest], series{own, total{1, 1}})
	w.families[famAdmission] = []series{{map[string]string{"operation": "UPDATE"}, total{1000, 85}}}
	c := call{verb: "PUT", resource: "configmaps", operation: "UPDATE"}
	sums := func() []float64 {
		b, mean := w.plugins(c)
		return []float64{w.excesses(c), w.webhooks(c.operation).most, b.least, mean}
	}
	first := sums()
	for range 100 {
		if again := sums(); !slices.Equal(first, again) {
			t.Fatalf("the sums are %v and, in the second call, %v", first, again)
		}
	}
}
