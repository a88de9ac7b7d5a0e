// Package breakdown splits the mean request latency that clients measured into parts: the generator, the connection and
// the layers of the API server. It uses the measurements of the generator, the archive and the summary of the audit
// log. It does not split quantiles, because quantiles of the parts do not add up to the total.
// docs/reference/breakdown.md has the formula and the source of each part.
package breakdown

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/auditsummary"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/result"
)

// The run's share is the number of the run's requests divided by the number of all requests that the API servers counted,
// for one verb and resource. Split uses the servers' metrics only if this share is between minShare and maxShare.
// With the share s, the servers' mean is wrong by (1-s) times the difference between other clients' mean and the run's.
// For example, with 80% it is wrong by half if other clients' requests take 3.5 times as long. A share well over 1
// means that some API servers were not scraped.
const (
	minShare = 0.80
	maxShare = 1.20
)

// mentionShare is the difference between the run's share and 1 above which the row has a warning.
const mentionShare = 0.02

// Split splits the mean latency of the requests of each load, for each phase. Without an archive or an audit summary,
// warnings in the rows say what is missing. A load without requests in a phase has no row. Split fails only if ctx
// ends.
func Split(ctx context.Context, rec *rundir.Recorded) ([]result.Breakdown, error) {
	outages, _ := timeline.Of(rec.Timeline).Outages()
	var rows []result.Breakdown
	for _, p := range rec.Measurements.Phases {
		if !slices.ContainsFunc(rundir.Requests(p), func(r result.Requests) bool { return r.Latency.Count > 0 }) {
			continue
		}
		s, err := readServer(ctx, rec.Archive, p, outages)
		if err != nil {
			return nil, err
		}
		rows = append(rows, splitPhase(p, s, rec.Audit)...)
	}
	return rows, nil
}

type window struct {
	phase result.Phase
	loads []result.Requests
	server
	audit *auditsummary.Audit
}

func splitPhase(p result.Phase, s server, audit *auditsummary.Audit) []result.Breakdown {
	w := window{phase: p, loads: rundir.Requests(p), server: s, audit: audit}
	var rows []result.Breakdown
	for _, r := range w.loads {
		if r.Latency.Count > 0 {
			rows = append(rows, w.split(r))
		}
	}
	return rows
}

type row struct{ result.Breakdown }

// part adds a part of the latency to the row of the breakdown. `of` describes the requests over which the time was
// averaged (ofOurs and the following constants). If the time is negative, the measurements contradict each other, and
// part adds 0 and a warning.
func (b *row) part(name string, seconds float64, of, source, note string) {
	const noticeable = -1e-6
	if seconds < noticeable {
		switch name {
		case result.PartWire:
			b.warn("the computed wire time is negative and shown as 0: the server's mean includes other, slower requests, or handlers continued after the response")
		default:
			b.warn("the computed time of %s is negative and shown as 0, because clocks or counters were not read at the same time", name)
		}
	}
	b.Parts = append(b.Parts, result.BreakdownPart{Name: name, Seconds: max(seconds, 0), Of: of, Source: source, Note: note})
}

func (b *row) warn(format string, args ...any) {
	b.Warnings = append(b.Warnings, fmt.Sprintf(format, args...))
}

// The requests over which the mean of a part was computed.
const (
	ofOurs      = "our requests"
	ofCall      = "verb and resource"
	ofResource  = "resource"
	ofOperation = "operation"
	ofServer    = "server"
)

const clientSource = "the generator's histogram"

func (w window) split(r result.Requests) result.Breakdown {
	b := &row{result.Breakdown{
		Phase: w.phase.Name, Load: r.Load, Verb: r.Verb, Resource: r.Resource, Variant: r.Variant, Tenant: r.Tenant,
		Count: r.Latency.Count, ClientMean: r.Latency.Mean, ClientP99: r.Latency.P99,
	}}
	if w.phase.Interrupted {
		b.warn("the phase was interrupted: requests that were in flight at its end are counted either by the client or by the server, not by both")
	}
	b.part(result.PartLag, r.Lag.Mean, ofOurs, clientSource, "")
	if r.Connect.Count > 0 {
		b.part(result.PartConnect, r.Connect.Mean, ofOurs, clientSource, "")
	}
	w.splitService(b, r)
	b.fit()
	return b.Breakdown
}

// fit sets Unexplained to the mean latency minus all parts. The parts may add up to more than the mean, because some of
// them are means over other requests too. In that case, fit scales down all parts of the API server by the same factor.
func (b *row) fit() {
	left, server := b.ClientMean, 0.0
	ours := func(name string) bool {
		return name == result.PartLag || name == result.PartConnect || name == result.PartWire
	}
	for _, p := range b.Parts {
		if ours(p.Name) {
			left -= p.Seconds
		} else {
			server += p.Seconds
		}
	}
	left = max(left, 0)
	if server > left {
		if server-left > noticeableShare*b.ClientMean {
			b.warn("the API server's parts add up to %.3g ms, more than the %.3g ms that the client's mean leaves for them, because their means include other requests; they are scaled down", server*1e3, left*1e3)
		}
		for i := range b.Parts {
			if !ours(b.Parts[i].Name) {
				b.Parts[i].Seconds *= left / server
			}
		}
	}
	b.Unexplained = b.ClientMean
	for _, p := range b.Parts {
		b.Unexplained -= p.Seconds
	}
	if b.Unexplained < 1e-9 { // a rounding error
		b.Unexplained = max(b.Unexplained, 0)
	}
}

func (w window) splitService(b *row, r result.Requests) {
	c, known := callOf(r)
	if !known {
		b.UnexplainedNote = "wire and API server together"
		b.warn("the API server's metrics do not show %s of %s separately from other requests", r.Verb, r.Resource)
		return
	}
	audited, perRequest, exact := w.audited(b, r, c)
	all := w.total(famRequest, c.is)
	refused := w.refusal(b, r, c, all)
	if !exact && refused == "" {
		audited, perRequest = all.mean(), perSent(r, handled(r))
		b.ServerSource = "metrics"
	}
	if !exact && refused != "" {
		b.UnexplainedNote = "wire and API server together"
		b.warn("not split: %s", refused)
		return
	}
	b.ServerMean = &audited
	of, source := ofCall, "service time minus "+famRequest
	if exact {
		of, source = ofOurs, "service time minus the time in the audit log"
	}
	b.part(result.PartWire, r.Service.Mean-audited*perRequest, of, source, wireNote(r))
	if refused != "" {
		b.UnexplainedNote = "all time in the API server"
		b.warn("the API server's time is not split: %s", refused)
		return
	}
	b.UnexplainedNote = "in the API server: decoding, validation, conversion, encoding, writing the response, and waiting for CPU"
	w.serverParts(b, c, all, perSent(r, handled(r)))
}

// audited returns the mean time of the run's requests at the API server according to the audit log, and the number of
// audited requests per sent request. ok is false if the audit log has no usable data on these requests.
func (w window) audited(b *row, r result.Requests, c call) (mean, perRequest float64, ok bool) {
	class, found := w.audit.ClassOf(w.phase.Name, c.audit, r.Resource, r.Tenant)
	if !found {
		if w.audit != nil {
			b.warn("the audit log contains no such request of this run")
		}
		return 0, 0, false
	}
	var ours int64
	var mixed []string
	for _, o := range w.loads {
		oc, _ := callOf(o)
		if oc.audit != c.audit || o.Resource != r.Resource || o.Tenant != r.Tenant || o.Latency.Count == 0 {
			continue
		}
		if o.Verb != r.Verb {
			b.warn("the audit log cannot separate %s from %s, so it is not used", r.Verb, o.Verb)
			return 0, 0, false
		}
		ours += max(answered(o), o.Pages)
		mixed = addOther(mixed, r, o)
	}
	share := float64(class.Server.Count) / float64(max(ours, 1))
	switch {
	case share < minShare || share > maxShare:
		b.warn("the audit log has %d requests, but loadgen received %d responses, so the log is not used", class.Server.Count, ours)
		return 0, 0, false
	case share < 1-mentionShare || share > 1+mentionShare:
		b.warn("the audit log has %d requests, but loadgen received %d responses", class.Server.Count, ours)
	}
	if len(mixed) > 0 {
		b.warn("the audit log does not separate these requests from %s, so the server's times include all of them", strings.Join(mixed, ", "))
	}
	b.ServerP99, b.ServerSource, b.Slow = &class.Server.P99, "audit", class.Slow
	return class.Server.Mean, perSent(r, max(answered(r), r.Pages)), true
}

// refusal returns why the API server's metrics of a call do not represent the run's requests, or "" if they do.
func (w window) refusal(b *row, r result.Requests, c call, all total) string {
	if w.missing != "" {
		return w.missing
	}
	var ours int64
	var mixed []string
	for _, o := range w.loads {
		oc, _ := callOf(o)
		oc.audit = c.audit
		if oc != c || o.Latency.Count == 0 {
			continue
		}
		ours += max(handled(o), o.Pages)
		mixed = addOther(mixed, r, o)
	}
	if all.count == 0 {
		return "the API servers' metrics count no such request"
	}
	share := float64(ours) / all.count
	b.OurShare = &share
	switch {
	case share < minShare:
		return fmt.Sprintf("only %.0f%% of %.0f such requests came from loadgen, so the server's mean depends too much on other clients", share*100, all.count)
	case share > maxShare:
		return fmt.Sprintf("the API servers' metrics count only %.0f of loadgen's %d requests, because not all API servers were scraped", all.count, ours)
	case share < 1-mentionShare:
		b.warn("the server's mean times include requests of other clients (%.1f%%)", (1-share)*100)
	case share > 1+mentionShare:
		b.warn("the API servers' metrics count only %.0f of loadgen's %d requests", all.count, ours)
	}
	if len(mixed) > 0 {
		b.warn("the API server's metrics do not separate these requests from %s, so the server's times include all of them", strings.Join(mixed, ", "))
	}
	return ""
}

// addOther adds to names a description of the requests o, unless o and r are the same requests.
func addOther(names []string, r, o result.Requests) []string {
	name := "load " + o.Load
	if o.Load == r.Load {
		name = "other requests of the load"
	}
	if slices.Contains(names, name) || o.Load == r.Load && o.Verb == r.Verb && o.Variant == r.Variant && o.Tenant == r.Tenant {
		return names
	}
	return append(names, name)
}

// answered returns the number of requests that the API server answered, with any status.
func answered(r result.Requests) int64 {
	var n int64
	for outcome, count := range r.Outcomes {
		if _, err := strconv.Atoi(outcome); err == nil {
			n += count
		}
	}
	return n
}

// handled returns the number of requests that reached a handler. It excludes the status codes 401, 403 and 429, because
// the request histograms do not count such requests.
func handled(r result.Requests) int64 {
	return max(answered(r)-r.Outcomes["401"]-r.Outcomes["403"]-r.Outcomes["429"], 0)
}

// perSent returns the number of requests at the server per sent request. The number at the server is `at` or, if
// larger, the number of list pages. The result is less than 1 if some requests never arrived, and more than 1 if lists
// have several pages.
func perSent(r result.Requests, at int64) float64 {
	return float64(max(at, r.Pages)) / float64(r.Latency.Count)
}

func wireNote(r result.Requests) string {
	if lost := r.Latency.Count - handled(r); lost > 0 {
		return fmt.Sprintf("this includes the whole time of %d requests that did not reach a handler (refused, reset, 401, 403, 429)", lost)
	}
	if r.Connect.Count == 0 {
		return "this includes the wait for a connection"
	}
	return ""
}
