package breakdown

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/internal/archivetest"
	"github.com/stormglass/stormglass/loadgen/internal/auditsummary"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scrape"
	"github.com/stormglass/stormglass/loadgen/result"
)

// lab is a recorded API server with known numbers.
type lab struct {
	*archivetest.Lab
	t   *testing.T
	api *archivetest.Component
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := archivetest.New(t, scrape.Options{}, "kube-apiserver-0")
	return &lab{l, t, l.Parts["kube-apiserver-0"]}
}

// observe adds n observations of the value `seconds` to a histogram.
func (l *lab) observe(family, labels string, n, seconds float64) {
	l.api.Observe(family, labels, nil, seconds, n)
}

// phase records a phase with a storm and the given loads.
func (l *lab) phase(name string, storm func(), loads ...result.Requests) result.Phase {
	l.t.Helper()
	p := l.Phase(name, storm)
	p.Requests = loads
	return p
}

func (l *lab) split(audit *auditsummary.Audit, phases ...result.Phase) []result.Breakdown {
	l.t.Helper()
	a := l.Archive()
	rows, err := Split(context.Background(), &rundir.Recorded{Measurements: result.Measurements{Phases: phases}, Archive: a, Audit: audit})
	if err != nil {
		l.t.Fatal(err)
	}
	for _, r := range rows {
		addsUp(l.t, r)
	}
	return rows
}

// addsUp checks that the parts and the unexplained time add up to the client's mean, to the last digit of a float64.
func addsUp(t *testing.T, r result.Breakdown) {
	t.Helper()
	sum := r.Unexplained
	for _, p := range r.Parts {
		sum += p.Seconds
	}
	if math.Abs(sum-r.ClientMean) > 1e-15*float64(len(r.Parts)+1) {
		t.Errorf("%s %s: parts and unexplained time add up to %.18f, but the client's mean is %.18f", r.Verb, r.Resource, sum, r.ClientMean)
	}
}

// load returns n requests of one verb, with response 200 and known means in ms.
func load(name, verb, resource string, n int64, lag, connect, service float64) result.Requests {
	l := func(ms float64) result.Latency {
		return result.Latency{Count: n, Mean: ms / 1e3, P99: 5 * ms / 1e3}
	}
	return result.Requests{
		Load: name, Verb: verb, Resource: resource, Offered: n, Sent: n, Succeeded: n, Outcomes: map[string]int64{"200": n},
		Latency: l(lag + connect + service), Lag: l(lag), Connect: l(connect), Service: l(service),
	}
}

// handle adds the server's observations of n requests. Each took `ms` milliseconds. This includes `waited` milliseconds
// in priority and fairness.
func (l *lab) handle(verb, group, resource, scope string, n, ms, waited float64) {
	labels := fmt.Sprintf(`verb="%s",group="%s",version="v1",resource="%s",subresource="",scope="%s",component="apiserver"`, verb, group, resource, scope)
	l.observe(famRequest, labels+`,dry_run=""`, n, ms/1e3)
	l.observe(famSLI, labels, n, (ms-waited)/1e3)
}

// expect compares parts, given as "name ms". The last one is the unexplained time.
func expect(t *testing.T, r result.Breakdown, want ...string) {
	t.Helper()
	var got []string
	for _, p := range r.Parts {
		got = append(got, fmt.Sprintf("%s %.4g", p.Name, p.Seconds*1e3))
	}
	got = append(got, fmt.Sprintf("unexplained %.4g", r.Unexplained*1e3))
	if !slices.Equal(got, want) {
		t.Errorf("%s %s:\n got  %s\n want %s", r.Verb, r.Resource, strings.Join(got, ", "), strings.Join(want, ", "))
	}
}

func warns(t *testing.T, r result.Breakdown, want ...string) {
	t.Helper()
	if len(r.Warnings) != len(want) {
		t.Errorf("%s %s warns %q, want %d warnings %q", r.Verb, r.Resource, r.Warnings, len(want), want)
		return
	}
	for i, w := range want {
		if !strings.Contains(r.Warnings[i], w) {
			t.Errorf("%s %s warns %q, want %q", r.Verb, r.Resource, r.Warnings[i], w)
		}
	}
}
