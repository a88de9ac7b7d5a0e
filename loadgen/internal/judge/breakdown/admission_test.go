package breakdown

import (
	"math"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// milliseconds returns a part and its maximum, or -1 if the part is missing.
func milliseconds(r result.Breakdown, name string) (least, most float64) {
	for _, p := range r.Parts {
		if p.Name == name {
			least, most = p.Seconds*1e3, p.Seconds*1e3
			if p.Most != nil {
				most = *p.Most * 1e3
			}
			return least, most
		}
	}
	return -1, -1
}

// told compares the parts that may contain waits and webhooks with the real times. None may be negative.
func told(t *testing.T, r result.Breakdown, fairness, webhooks float64) {
	t.Helper()
	near := func(got, want float64) bool { return math.Abs(got-want) <= max(.02*r.ClientMean*1e3, .001) }
	least, most := milliseconds(r, result.PartFairness)
	if !near(least, fairness) || least > most {
		t.Errorf("%s %s: fairness %.3g to %.3g ms, planted %.3g", r.Verb, r.Resource, least, most, fairness)
	}
	if least, most = milliseconds(r, result.PartAdmission); !near(max(least, 0), webhooks) && (least > webhooks || most < webhooks) {
		t.Errorf("%s %s: admission %.3g to %.3g ms, planted %.3g", r.Verb, r.Resource, least, most, webhooks)
	}
	for _, p := range r.Parts {
		if p.Seconds < 0 || r.Unexplained < 0 {
			t.Errorf("%s %s: a part is negative: %+v, unexplained %v", r.Verb, r.Resource, p, r.Unexplained)
		}
	}
}

func (l *lab) webhook(name, kind, operation string, n, ms float64) {
	l.observe(famWebhook, `name="`+name+`",type="`+kind+`",operation="`+operation+`",rejected="false"`, n, ms/1e3)
}

func (l *lab) step(operation string, n, ms float64) {
	l.observe(famAdmission, `type="validate",operation="`+operation+`",rejected="false"`, n, ms/1e3)
}

func (l *lab) waited(schema string, n, ms float64) {
	l.observe(famWait, `priority_level="x",execute="true",flow_schema="`+schema+`"`, n, ms/1e3)
}

// A webhook's time covers the requests that it handled, even if other clients use the same verb.
func TestWebhooksWithOtherClients(t *testing.T) {
	for name, c := range map[string]struct {
		verb               string
		storm              func(l *lab)
		fairness, webhooks float64
	}{
		"nodes renew leases": {"update", func(l *lab) {
			l.handle("PUT", "", "configmaps", "resource", 100, 40, 30)
			l.handle("PUT", "coordination.k8s.io", "leases", "resource", 300, 5, 0)
			l.webhook("policy", "validating", "UPDATE", 100, 30)
			l.step("UPDATE", 100, 30)
			l.waited("global-default", 400, .01)
		}, 0, 30},
		"leases, and no record of waits": {"update", func(l *lab) {
			l.handle("PUT", "", "configmaps", "resource", 100, 40, 30)
			l.handle("PUT", "coordination.k8s.io", "leases", "resource", 300, 5, 0)
			l.webhook("policy", "validating", "UPDATE", 100, 30)
			l.step("UPDATE", 100, 30)
		}, 0, 30},
		"the webhook is for another resource": {"update", func(l *lab) {
			l.handle("PUT", "", "configmaps", "resource", 100, 40, 0)
			l.handle("PUT", "", "secrets", "resource", 300, 35, 30)
			l.webhook("policy", "validating", "UPDATE", 300, 30)
			l.step("UPDATE", 300, 30)
			l.waited("global-default", 400, .01)
		}, 0, 0},
		"a webhook for another resource, and a full queue": {"update", func(l *lab) {
			l.handle("PUT", "", "configmaps", "resource", 100, 40, 20)
			l.handle("PUT", "", "secrets", "resource", 10, 35, 30)
			l.webhook("policy", "validating", "UPDATE", 10, 30)
			l.step("UPDATE", 10, 30)
			l.waited("global-default", 100, 20)
		}, 17, 0}, // certain; 3 ms may be either
		"the webhook is only for creations": {"update", func(l *lab) {
			l.handle("PUT", "", "configmaps", "resource", 100, 40, 20)
			l.handle("POST", "", "configmaps", "resource", 300, 35, 30)
			l.webhook("policy", "admit", "CREATE", 300, 30)
			l.step("CREATE", 300, 30)
			l.waited("global-default", 100, 20)
		}, 20, 0},
		"two mutating, one after another": {"create", func(l *lab) {
			l.handle("POST", "", "configmaps", "resource", 100, 60, 50)
			l.handle("POST", "", "events", "resource", 900, 5, 0)
			l.webhook("a", "admit", "CREATE", 100, 20)
			l.webhook("b", "admit", "CREATE", 100, 30)
			l.step("CREATE", 100, 50)
			l.waited("service-accounts", 1000, .01)
		}, 0, 50},
		"two validating, side by side": {"create", func(l *lab) {
			l.handle("POST", "", "configmaps", "resource", 100, 40, 30)
			l.handle("POST", "", "events", "resource", 900, 5, 0)
			l.webhook("a", "validating", "CREATE", 100, 20)
			l.webhook("b", "validating", "CREATE", 100, 30)
			l.step("CREATE", 100, 30)
			l.waited("service-accounts", 1000, .01)
		}, 0, 30},
		"a queue and a webhook, both ours": {"create", func(l *lab) {
			l.handle("POST", "", "configmaps", "resource", 100, 70, 50)
			l.handle("POST", "", "events", "resource", 900, 5, 0)
			l.webhook("a", "admit", "CREATE", 100, 30)
			l.step("CREATE", 100, 30)
			l.waited("service-accounts", 100, 20)
		}, 20, 30},
		"nodes stand in their queue": {"update", func(l *lab) {
			l.handle("PUT", "", "configmaps", "resource", 100, 40, 30)
			l.handle("PUT", "coordination.k8s.io", "leases", "resource", 300, 105, 100)
			l.webhook("policy", "validating", "UPDATE", 100, 30)
			l.step("UPDATE", 100, 30)
			l.waited("system-node-high", 300, 100)
		}, 0, 30},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			p := l.phase("p", func() { c.storm(l) }, load("w", c.verb, "configmaps", 100, 0, 0, 71))
			told(t, l.split(nil, p)[0], c.fairness, c.webhooks)
		})
	}
}

// If other clients wait in our queue and webhooks also handle their requests, the metrics cannot separate waits from
// webhooks, so one part contains both.
func TestAdmissionOrFairness(t *testing.T) {
	l := newLab(t)
	p := l.phase("p", func() {
		l.handle("PUT", "", "configmaps", "resource", 100, 40, 30)
		l.handle("PUT", "", "secrets", "resource", 300, 40, 30)
		l.webhook("policy", "validating", "UPDATE", 200, 30)
		l.step("UPDATE", 200, 30)
		l.waited("global-default", 200, 30)
	}, load("w", "update", "configmaps", 100, 0, 0, 41))
	r := l.split(nil, p)[0]
	if least, _ := milliseconds(r, result.PartAdmissionOrFairness); math.Abs(least-30) > 1e-6 {
		t.Errorf("admission or fairness: %v ms of 30: %+v", least, r.Parts)
	}
	if least, _ := milliseconds(r, result.PartFairness); least != -1 {
		t.Errorf("the row also has %v ms of fairness", least)
	}
	for _, p := range r.Parts {
		if p.Name == result.PartAdmissionOrFairness && !strings.Contains(p.Note, "priority and fairness took 0 to 30 ms in total, webhooks took 0 to 30 ms in total") {
			t.Errorf("note = %q", p.Note)
		}
	}
}

// A scrape can come when a request is counted in only one of the two histograms. This adds neither time in queues nor
// negative time.
func TestScrapeBetweenTwoHistograms(t *testing.T) {
	for name, c := range map[string]struct{ late, early float64 }{"SLI late": {0, 5}, "SLI early": {5, 0}} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			p := l.phase("p", func() {
				const labels = `verb="GET",group="",version="v1",resource="configmaps",subresource="",scope="resource",component="apiserver"`
				l.observe(famRequest, labels+`,dry_run=""`, 100, .002)
				l.observe(famSLI, labels, 100, .002)
				l.observe(famRequest, labels+`,dry_run=""`, c.late, .1)
				l.observe(famSLI, labels, c.early, .1)
				l.waited("global-default", 100, .001)
			}, load("r", "get", "configmaps", 100, 0, 0, 9))
			r := l.split(nil, p)[0]
			least, most := milliseconds(r, result.PartFairness)
			if least != 0 || most < .1 {
				t.Errorf("fairness is %v to %v ms where no request waited: %+v", least, most, r)
			}
			if strings.Contains(strings.Join(r.Warnings, " "), "webhook") {
				t.Errorf("a GET is warned of webhooks: %q", r.Warnings)
			}
		})
	}
}

// The time that policies spent on other resources' requests is not attributed to ours, and their time on ours
// is kept.
func TestPoliciesOfOtherResources(t *testing.T) {
	for name, c := range map[string]struct{ ours, leases, certain float64 }{
		"of leases":     {0, 20, 0},
		"of configmaps": {20, 0, 15},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t)
			p := l.phase("p", func() {
				l.handle("PUT", "", "configmaps", "resource", 100, 5+c.ours, 0)
				l.handle("PUT", "coordination.k8s.io", "leases", "resource", 300, 5+c.leases, 0)
				l.observe(famEtcd, `operation="update",group="coordination.k8s.io",resource="leases"`, 300, .004)
				l.step("UPDATE", 100, c.ours)
				l.step("UPDATE", 300, c.leases)
			}, load("w", "update", "configmaps", 100, 0, 0, 30))
			r := l.split(nil, p)[0]
			least, most := milliseconds(r, result.PartAdmission)
			if least > c.ours+.001 || most < c.ours-.001 || least < c.certain {
				t.Errorf("admission is %v to %v ms, planted %v: %+v", least, most, c.ours, r.Parts)
			}
		})
	}
}

// Fast plugins are assumed to take the same time for every resource, and the part states its maximum.
func TestSmallPluginsHaveTheOperationsMean(t *testing.T) {
	l := newLab(t)
	p := l.phase("p", func() {
		l.handle("PUT", "", "configmaps", "resource", 100, 5, 0)
		l.handle("PUT", "coordination.k8s.io", "leases", "resource", 100, 5, 0)
		l.step("UPDATE", 200, .2)
	}, load("w", "update", "configmaps", 100, 0, 0, 6))
	if least, most := milliseconds(l.split(nil, p)[0], result.PartAdmission); math.Abs(least-.2) > 1e-6 || math.Abs(most-.4) > 1e-6 {
		t.Errorf("admission is %v to %v ms, want 0.2 to 0.4", least, most)
	}
}

// Parts that are means over slower requests than ours do not make the rest negative.
func TestPartsFitTheMean(t *testing.T) {
	l := newLab(t)
	p := l.phase("p", func() {
		l.handle("PATCH", "", "configmaps", "resource", 100, 8, 0)
		l.observe(famEtcd, patchConfigMaps, 100, .012)
	}, load("w", "patch", "configmaps", 100, 0, 0, 9))
	r := l.split(nil, p)[0]
	if least, _ := milliseconds(r, result.PartEtcd); math.Abs(least-8) > 1e-6 || r.Unexplained != 0 {
		t.Errorf("etcd %v ms, unexplained %v s", least, r.Unexplained)
	}
	warns(t, r, famFilter, famAdmission, "the API server's parts add up to 12 ms, more than the 8 ms that the client's mean leaves for them, because their means include other requests")
}
