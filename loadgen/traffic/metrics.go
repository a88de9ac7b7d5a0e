package traffic

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// requestMetrics are the metrics of one request load; nil fields of a load
// without a registerer do nothing.
type requestMetrics struct {
	total   *codeCounter
	unsent  prometheus.Counter
	seconds prometheus.Observer
	lag     prometheus.Observer
}

// watchMetrics are the metrics of one set of watches.
type watchMetrics struct {
	open       prometheus.Gauge
	events     prometheus.Counter
	delivered  prometheus.Counter
	lost       prometheus.Counter
	duplicated prometheus.Counter
	reordered  prometheus.Counter
	relists    prometheus.Counter
	reconnects prometheus.Counter
	delivery   prometheus.Observer
}

// HistogramOpts are those of every latency of the loads: buckets from 1 ms to 64 s by powers of two. The native histogram beside
// them is true to 10%.
func HistogramOpts(name, help string) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Name: name, Help: help,
		Buckets:                        prometheus.ExponentialBuckets(0.001, 2, 17),
		NativeHistogramBucketFactor:    1.1,
		NativeHistogramMaxBucketNumber: 160,
	}
}

func newRequestMetrics(reg prometheus.Registerer, load, verb, resource string) (requestMetrics, error) {
	labels := []string{"load", "verb", "resource"}
	total := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stormglass_requests_total",
		Help: "Requests sent, by HTTP status or kind of failure.",
	}, append([]string{"code"}, labels...))
	unsent := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stormglass_requests_unsent_total",
		Help: "Arrivals that could not be sent: no free slot under maxInFlight.",
	}, labels)
	seconds := prometheus.NewHistogramVec(HistogramOpts("stormglass_request_seconds",
		"Latency of requests from their intended start to the last byte of the answer."), labels)
	lag := prometheus.NewHistogramVec(HistogramOpts("stormglass_request_lag_seconds",
		"From the intended start of a request to its sending: the generator's own delay."), []string{"load"})
	err := errors.Join(Register(reg, &total), Register(reg, &unsent), Register(reg, &seconds), Register(reg, &lag))
	values := []string{load, verb, resource}
	return requestMetrics{
		total:  &codeCounter{vec: total.MustCurryWith(prometheus.Labels{"load": load, "verb": verb, "resource": resource})},
		unsent: unsent.WithLabelValues(values...), seconds: seconds.WithLabelValues(values...), lag: lag.WithLabelValues(load),
	}, err
}

func (m requestMetrics) record(o Outcome, intended, sent, end time.Time) {
	m.total.inc(o)
	m.seconds.Observe(end.Sub(intended).Seconds())
	m.lag.Observe(sent.Sub(intended).Seconds())
}

// codeCounter finds the counter of an Outcome without making its label.
type codeCounter struct {
	vec *prometheus.CounterVec
	by  sync.Map // Outcome to prometheus.Counter
}

func (c *codeCounter) inc(o Outcome) {
	counter, ok := c.by.Load(o)
	if !ok {
		counter, _ = c.by.LoadOrStore(o, c.vec.WithLabelValues(o.String()))
	}
	counter.(prometheus.Counter).Inc()
}

func newWatchMetrics(reg prometheus.Registerer, load string) (watchMetrics, error) {
	var m watchMetrics
	label := []string{"load"}
	var errs []error
	counter := func(name, help string) prometheus.Counter {
		vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, label)
		errs = append(errs, Register(reg, &vec))
		return vec.WithLabelValues(load)
	}
	m.events = counter("stormglass_watch_events_total", "Watch events read, bookmarks and foreign ones included.")
	m.delivered = counter("stormglass_watch_delivered_total", "First deliveries of measured writes.")
	m.lost = counter("stormglass_watch_lost_total", "Deliveries of acknowledged writes that were given up, after a drain or when the write left the ledger.")
	m.duplicated = counter("stormglass_watch_duplicated_total", "Further deliveries of a measured write to the same watch.")
	m.reordered = counter("stormglass_watch_reordered_total", "Deliveries older than one that the same watch has seen.")
	m.relists = counter("stormglass_watch_relists_total", "Watches that had to list again (410).")
	m.reconnects = counter("stormglass_watch_reconnects_total", "Watches that ended and were resumed by resourceVersion.")
	open := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Name: "stormglass_watches_open", Help: "Watches that are established.",
	}, label)
	delivery := prometheus.NewHistogramVec(HistogramOpts("stormglass_watch_delivery_seconds",
		"From a write's acknowledgement to its delivery on a watch."), label)
	errs = append(errs, Register(reg, &open), Register(reg, &delivery))
	m.open, m.delivery = open.WithLabelValues(load), delivery.WithLabelValues(load)
	return m, errors.Join(errs...)
}

// Register registers a collector, or takes the one that another load has
// registered already. Without a registerer the metrics are kept for nobody.
func Register[C prometheus.Collector](reg prometheus.Registerer, c *C) error {
	if reg == nil {
		return nil
	}
	err := reg.Register(*c)
	var twice prometheus.AlreadyRegisteredError
	if errors.As(err, &twice) {
		*c = twice.ExistingCollector.(C)
		return nil
	}
	if err != nil {
		return fmt.Errorf("register metrics of the load: %w", err)
	}
	return nil
}
