package gate

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Limit is a built-in metric for abortOn. A run ends early when the metric exceeds its bound.
type Limit struct {
	Name string
	What string // description of the metric, as part of a sentence
	Unit scenario.Unit
	// Client means that the metric comes from the counts of the generator's own requests, which are updated ten times a
	// second. Other limits read recorded metrics.
	Client bool

	expr   string // PromQL of a limit on recorded metrics; $range stands for the range of its rates
	client func(Client, float64) clientFigure
}

// clientFigure is the current value of a limit with Limit.Client, compared with its bound.
type clientFigure struct {
	value float64
	text  string // text to show instead of the value if the exact value is unknown
	over  bool   // whether the value exceeds the bound
	few   bool   // whether there are too few requests to decide
}

// Client holds the generator's data on its own requests.
type Client struct {
	*samples.Window
	// Overdue counts the requests that have been open for longer than a duration.
	Overdue func(time.Duration) int64
}

// Client limits are not judged with fewer requests than minRecent within the last samples.Span or, for the error
// budget, than minBudget since the start of the run.
const (
	minRecent = 10
	minBudget = 100
)

// Limits returns all limits, the client limits first.
func Limits() []Limit {
	share := func(of func(samples.Counts) int64, counts func(Client) samples.Counts, least int64) func(Client, float64) clientFigure {
		return func(c Client, bound float64) clientFigure {
			n := counts(c)
			v := float64(of(n)) / float64(max(n.Ended, 1))
			return clientFigure{value: v, over: v > bound, few: n.Ended < least}
		}
	}
	recent, total := func(c Client) samples.Counts { return c.Recent() }, func(c Client) samples.Counts { return c.Total() }
	throttled, errors := func(c samples.Counts) int64 { return c.Throttled }, func(c samples.Counts) int64 { return c.Errors }
	return []Limit{
		{Name: "latency", What: "p99 from the intended start, minus the delay that the generator caused. An unanswered request counts as slow when it exceeds the bound", Unit: scenario.Seconds, Client: true, client: clientLatency},
		{Name: "throttled", What: "fraction of requests answered with 429", Unit: scenario.Ratio, Client: true, client: share(throttled, recent, minRecent)},
		{Name: "errors", What: "fraction of requests with a 5xx answer, a broken connection, or no answer in time", Unit: scenario.Ratio, Client: true, client: share(errors, recent, minRecent)},
		{Name: "error-budget", What: "the same fraction as `errors`, of all requests since the first phase began (at least 100 requests)", Unit: scenario.Ratio, Client: true, client: share(errors, total, minBudget)},
		{Name: "apiserver-latency", What: "p99 of all clients' requests at the slowest API server, without WATCH, CONNECT and streams to pods", Unit: scenario.Seconds,
			expr: `max(histogram_quantile(0.99, sum by (instance, le) (rate(apiserver_request_duration_seconds_bucket{verb!~"WATCH|CONNECT",subresource!~"log|exec|attach|portforward|proxy"}[$range]))))`},
		{Name: "apiserver-throttled", What: "fraction of all clients' requests answered with 429", Unit: scenario.Ratio,
			expr: `(sum(rate(apiserver_request_total{code="429"}[$range])) or vector(0)) / sum(rate(apiserver_request_total[$range]))`},
		{Name: "apiserver-errors", What: "fraction of all clients' requests answered with 5xx", Unit: scenario.Ratio,
			expr: `(sum(rate(apiserver_request_total{code=~"5.."}[$range])) or vector(0)) / sum(rate(apiserver_request_total[$range]))`},
		{Name: "etcd-size", What: "size of the largest etcd member's database; without etcd's metrics, the size that the API server reports", Unit: scenario.Size,
			expr: `max(etcd_mvcc_db_total_size_in_bytes) or max(apiserver_storage_size_bytes)`},
		{Name: "etcd-quota", What: "largest fraction of its quota that a member's database uses; needs etcd's metrics", Unit: scenario.Ratio,
			expr: `max(etcd_mvcc_db_total_size_in_bytes / etcd_server_quota_backend_bytes)`},
	}
}

// clientLatency returns the p99 latency of recent requests. Requests that have been open for longer than the bound
// count as the slowest requests.
func clientLatency(c Client, bound float64) clientFigure {
	limit := time.Duration(min(bound, math.MaxInt32) * float64(time.Second))
	open := c.Overdue(limit)
	n := c.Recent().Ended + open
	above := n - latency.Rank(0.99, n) // the number of requests above the p99
	r := clientFigure{over: c.Over(limit)+open > above, few: n < minRecent}
	if open > above {
		r.value, r.text = bound, fmt.Sprintf("%d of %d requests have been open for longer than %s", open, n, show(scenario.Seconds, bound))
		return r
	}
	r.value = c.Longest(above - open).Seconds()
	return r
}

func limitNames() (names []string) {
	for _, l := range Limits() {
		names = append(names, l.Name)
	}
	return names
}

// compileLimit checks the name of a limit and the unit of its bound. fail returns an error about the given field.
func compileLimit(a *scenario.Abort, fail func(field, hint, format string, args ...any) error) (*Limit, error) {
	all := Limits()
	i := slices.IndexFunc(all, func(l Limit) bool { return l.Name == a.Limit })
	if i < 0 {
		names := limitNames()
		return nil, fail("limit", strictyaml.Hint(a.Limit, names, "limits: "+strings.Join(names, ", ")), "unknown limit %q", a.Limit)
	}
	l := &all[i]
	switch {
	case a.Max == nil:
		return nil, fail("max", "add max: "+l.Unit.Example(), "limit %s has no bound", l.Name)
	case !a.Max.Fits(l.Unit):
		return nil, fail("max", "write it as "+l.Unit.Example(), "%s is not in %s, the unit of %s", a.Max, l.Unit, l.Name)
	case a.Max.Value <= 0:
		return nil, fail("max", "a bound over 0", "a limit of %s would end every run", a.Max)
	case l.Unit == scenario.Ratio && a.Max.Value >= 1:
		return nil, fail("max", "less than 100%", "no share can be over %s, so this limit has no effect", a.Max)
	}
	return l, nil
}

// minRange is the shortest range over which a rate is computed. It contains three scrapes that are 10 s apart.
const minRange = 30 * time.Second

// at returns the PromQL of a limit. The range of its rates is long enough for the given scrape interval.
func (l *Limit) at(interval time.Duration) string {
	return strings.ReplaceAll(l.expr, "$range", fmt.Sprintf("%dms", max(minRange, 4*interval).Milliseconds()))
}
