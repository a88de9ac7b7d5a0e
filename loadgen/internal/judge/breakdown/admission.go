package breakdown

import (
	"fmt"
	"math"
	"slices"

	"github.com/stormglass/stormglass/loadgen/result"
)

// bounds are the minimum and the maximum of a value, in seconds.
type bounds struct{ least, most float64 }

func (b bounds) width() float64 { return b.most - b.least }

// fixedSchemas returns the flow schemas for components, nodes and probes. The requests of loads never match these flow
// schemas, so requests that wait there come from other clients.
func fixedSchemas() []string {
	return []string{
		"exempt", "probes", "system-leader-election", "workload-leader-election", "endpoint-controller", "system-node-high", "system-nodes",
		"kube-controller-manager", "kube-scheduler", "kube-system-service-accounts",
	}
}

// outside holds the parts of a call's duration that the API server's SLI duration excludes (endpoints/metrics,
// MonitorRequest): waits in priority and fairness, and webhooks. Times are means per request, in seconds.
type outside struct {
	seconds, resolution float64 // total of both parts; a total below resolution is noise
	fairness, webhooks  bounds
	asked               bool // whether a webhook was called for the operation
}

// outside returns bounds for the two parts of the time that the SLI duration of a call excludes: webhooks, and waits in
// priority and fairness. For a single verb and resource, only the sum of both is known: webhook metrics have only the
// operation as a label, and wait metrics only the flow schema. Two facts narrow the bounds:
//
//   - Webhooks took at least their total time for the operation, minus the maximum
//     that other calls of the operation can have spent in webhooks. Waits took at
//     most the remaining time.
//   - Waits took at most the total wait in all flow schemas that a load's requests can match.
func (w window) outside(c call) outside {
	wet := w.total(famRequest, func(l map[string]string) bool { return c.is(l) && l["dry_run"] == "" })
	o := outside{fairness: bounds{most: wet.mean()}}
	room := w.durations(c)
	if w.recorded(famSLI) {
		sli := w.total(famSLI, c.is)
		// Compare means and not sums: a scrape may come between the two observations of one request.
		o.seconds = wet.mean() - sli.mean()
		o.resolution = max(math.Abs(wet.count-sli.count)/max(wet.count, 1)*wet.mean(), -o.seconds)
		o.seconds = max(o.seconds, 0)
		o.fairness.most = o.seconds
		room = w.excesses(c)
	}
	if t := w.webhooks(c.operation); t.most > 0 && wet.count > 0 {
		o.asked = true
		o.webhooks = bounds{max(t.least-room, 0) / wet.count, t.most / wet.count}
	}
	o.fairness.least = max(o.fairness.most-o.webhooks.most, 0)
	o.fairness.most = max(o.fairness.most-o.webhooks.least, 0)
	if w.recorded(famWait) && wet.count > 0 {
		o.fairness.most = min(o.fairness.most, w.waits()/wet.count)
	}
	o.fairness.least = min(o.fairness.least, o.fairness.most)
	if w.recorded(famSLI) {
		o.webhooks.most = min(o.webhooks.most, o.seconds-o.fairness.least)
		o.webhooks.least = min(max(o.webhooks.least, o.seconds-o.fairness.most), o.webhooks.most)
	}
	return o
}

// waits returns the total time that requests waited in the queues of priority and fairness. It excludes flow schemas
// that the requests of loads never match.
func (w window) waits() float64 {
	return w.total(famWait, func(l map[string]string) bool {
		return l["execute"] != "false" && !slices.Contains(fixedSchemas(), l["flow_schema"])
	}).sum
}

// webhooks returns bounds for the time that all requests of an operation waited for webhooks. API servers call mutating
// webhooks one after another, and validating webhooks in parallel: together they take at least as long as the slowest
// one, and at most as long as the admission plugin that calls them.
func (w window) webhooks(operation string) bounds {
	if operation == "" {
		return bounds{}
	}
	of := func(l map[string]string) bool { return l["operation"] == operation }
	mutating := w.total(famWebhook, func(l map[string]string) bool { return of(l) && l["type"] == "admit" }).sum
	var validating bounds
	var each []float64
	for _, t := range w.by(famWebhook, "name", func(l map[string]string) bool { return of(l) && l["type"] != "admit" }) {
		validating.least = max(validating.least, t.sum)
		each = append(each, t.sum)
	}
	validating.most = sum(each)
	plugin := w.total(famController, func(l map[string]string) bool { return of(l) && l["name"] == "ValidatingAdmissionWebhook" })
	if plugin.count > 0 {
		validating.most = max(min(validating.most, plugin.sum), validating.least)
	}
	return bounds{mutating + validating.least, mutating + validating.most}
}

// durations returns the total request duration, in seconds, of the calls that have the same admission operation as c
// but another verb, resource or subresource.
func (w window) durations(c call) float64 {
	verbs := verbsOf(c.operation)
	return w.total(famRequest, func(l map[string]string) bool {
		return slices.Contains(verbs, l["verb"]) && l["dry_run"] == "" && !c.is(l)
	}).sum
}

// excesses is like durations, but adds up only the time by which each call exceeds its SLI duration.
func (w window) excesses(c call) float64 {
	type key struct{ verb, group, resource, subresource string }
	all, sli := map[key]total{}, map[key]total{}
	verbs := verbsOf(c.operation)
	for family, into := range map[string]map[key]total{famRequest: all, famSLI: sli} {
		for _, s := range w.families[family] {
			l := s.labels
			if slices.Contains(verbs, l["verb"]) && l["dry_run"] == "" && !c.is(l) {
				k := key{verbOf(l), l["group"], l["resource"], l["subresource"]}
				into[k] = into[k].plus(s.total)
			}
		}
	}
	var excess []float64
	for k, t := range all {
		excess = append(excess, max(t.mean()-sli[k].mean(), 0)*t.count)
	}
	return sum(excess)
}

// sum adds up values in ascending order: values from a map come in random order, and this would change the last bits of
// their sum.
func sum(values []float64) (s float64) {
	slices.Sort(values)
	for _, v := range values {
		s += v
	}
	return s
}

// plugins returns bounds for the time that a request of a call spent in admission plugins and policies, without
// webhooks. The API server measures this time only by operation. plugins assumes that all requests of the operation on
// the resource of c took the same time. Requests on other resources may have taken any part of the total, up to their
// whole duration. mean is the mean over all requests of the operation.
func (w window) plugins(c call) (b bounds, mean float64) {
	verbs := verbsOf(c.operation)
	of := func(l map[string]string) bool { return slices.Contains(verbs, l["verb"]) }
	same := w.total(famRequest, func(l map[string]string) bool { return of(l) && c.sameResource(l) })
	if same.count == 0 {
		return bounds{}, 0
	}
	all := w.total(famAdmission, func(l map[string]string) bool { return l["operation"] == c.operation }).sum
	all = max(all-w.webhooks(c.operation).most, 0)
	others := map[call]float64{}
	for _, s := range w.families[w.served()] {
		if of(s.labels) && !c.sameResource(s.labels) {
			others[call{group: s.labels["group"], resource: s.labels["resource"]}] += s.sum
		}
	}
	var rooms []float64
	for o, served := range others {
		rooms = append(rooms, max(served-w.stored(o, c.operation), 0))
	}
	b = bounds{max(all-sum(rooms), 0) / same.count, all / same.count}
	return b, max(all/w.ofOperation(c.operation), b.least)
}

// served returns the name of the request histogram that bounds the time in admission plugins: the SLI duration if it
// was recorded, because it is the tighter bound, otherwise the request duration.
func (w window) served() string {
	if w.recorded(famSLI) {
		return famSLI
	}
	return famRequest
}

// stored returns the time that writes of an operation to a resource spent in calls to etcd, which is not part of
// admission. A graceful deletion is an update in etcd. So if there were deletions too, the time of updates is unknown,
// and stored returns 0.
func (w window) stored(o call, operation string) float64 {
	write := map[string]string{"CREATE": "create", "UPDATE": "update", "DELETE": "delete"}[operation]
	if operation == "UPDATE" && w.calls(o, "DELETE")+w.calls(o, deleteCollection) > 0 {
		return 0
	}
	return w.total(famEtcd, func(l map[string]string) bool { return o.sameResource(l) && l["operation"] == write }).sum
}

// noticeableShare is a fraction of the client's mean latency. A lower and an upper bound that differ by at most this
// fraction count as equal.
const noticeableShare = 0.01

// smallShare is a fraction of the client's mean latency. If the time in plugins and policies is uncertain by at most
// this fraction, admission reports the mean over all resources, because the metrics do not name the resource. If it is
// more uncertain, admission reports the lower bound.
const smallShare = 0.10

// queues adds to the row b of the breakdown a part for priority and fairness, and a part for admission. Time that may
// belong to either of them becomes a third part.
func (w window) queues(b *row, c call, all total, perRequest float64) {
	o := w.outside(c)
	tolerance := max(noticeableShare*b.ClientMean/max(perRequest, 1e-9), o.resolution)
	known := o.fairness.width() <= tolerance
	waited, webhooks := o.fairness.least, o.webhooks.least
	if known {
		waited = o.fairness.most
		webhooks = min(o.webhooks.most, o.seconds-waited)
	}
	switch {
	case !w.recorded(famSLI):
		webhooks = o.webhooks.least
		b.warn("the unexplained time includes priority and fairness, because %s was not recorded", famSLI)
	case known || waited > 0:
		source := famRequest + " less " + famSLI
		if o.asked {
			source += " less " + famWebhook
		}
		if w.recorded(famWait) {
			source += ", at most " + famWait
		}
		b.part(result.PartFairness, waited*perRequest, ofCall, source, "")
		if most := o.resolution * perRequest; waited < o.resolution {
			p := &b.Parts[len(b.Parts)-1]
			p.Seconds, p.Most = 0, &most
		}
	}
	if !known && w.recorded(famSLI) {
		both := min(o.seconds, o.webhooks.most+o.fairness.most) - waited - webhooks
		b.part(result.PartAdmissionOrFairness, both*perRequest, ofCall, famRequest+" less "+famSLI, fmt.Sprintf(
			"priority and fairness took %s in total, webhooks took %s in total", between(o.fairness, perRequest), between(o.webhooks, perRequest)))
	}
	if c.operation != "" {
		w.admission(b, c, all, perRequest, webhooks, o.asked, tolerance)
	}
}

func between(b bounds, perRequest float64) string {
	return fmt.Sprintf("%.3g to %.3g ms", b.least*perRequest*1e3, b.most*perRequest*1e3)
}

// admission adds to the row b of the breakdown a part for webhooks, plugins and policies. Time that may belong to
// requests on other resources increases only the maximum of the part.
func (w window) admission(b *row, c call, all total, perRequest, webhooks float64, asked bool, tolerance float64) {
	if !w.recorded(famAdmission) {
		b.warn("the unexplained time includes admission, because %s was not recorded", famAdmission)
		return
	}
	plugins, mean := w.plugins(c)
	of, note := ofCall, ""
	if share := all.count / w.ofOperation(c.operation); share < 1 {
		of = ofOperation
		note = fmt.Sprintf("%.0f%% of all %s requests have this verb and resource", 100*share, c.operation)
	}
	if webhooks > 0 {
		note = join(note, fmt.Sprintf("webhooks took %.3g ms of this time", webhooks*perRequest*1e3))
	} else if asked {
		note = join(note, "webhooks were called, but perhaps only for other requests")
	}
	seconds := plugins.least
	switch {
	case plugins.width() <= tolerance:
		seconds = plugins.most
	case plugins.width()*perRequest <= smallShare*b.ClientMean:
		seconds = mean
	}
	b.part(result.PartAdmission, (webhooks+seconds)*perRequest, of, famAdmission, note)
	if plugins.width() > tolerance {
		p := &b.Parts[len(b.Parts)-1]
		most := (webhooks + plugins.most) * perRequest
		p.Most = &most
		p.Note = join(p.Note, fmt.Sprintf("up to %.3g ms of the upper value may belong to other resources", (plugins.most-seconds)*perRequest*1e3))
	}
}

func join(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}
