package request

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/stormglass/stormglass/internal/metricopts"
	"github.com/stormglass/stormglass/loadgen/internal/load"
)

// metrics are those of one kind of requests. Variants and tenants share them: each would be a histogram more.
type metrics struct {
	total   *prometheus.CounterVec // by code
	byCode  sync.Map               // traffic.Outcome to prometheus.Counter
	unsent  prometheus.Counter
	seconds prometheus.Observer
	lag     prometheus.Observer
}

func newMetrics(reg prometheus.Registerer, loadName string, kinds []Kind) ([]*metrics, error) {
	labels := []string{"load", "verb", "resource"}
	total := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stormglass_requests_total",
		Help: "Requests sent, by HTTP status or kind of failure.",
	}, append([]string{"code"}, labels...))
	unsent := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "stormglass_requests_unsent_total",
		Help: "Arrivals that could not be sent: no free slot under maxInFlight.",
	}, labels)
	seconds := prometheus.NewHistogramVec(metricopts.Latency("stormglass_request_seconds",
		"Latency of requests from their intended start to the last byte of the answer."), labels)
	lag := prometheus.NewHistogramVec(metricopts.Latency("stormglass_request_lag_seconds",
		"From the intended start of a request to its sending: the generator's own delay."), []string{"load"})
	err := errors.Join(load.Register(reg, &total), load.Register(reg, &unsent), load.Register(reg, &seconds), load.Register(reg, &lag))
	all := make([]*metrics, len(kinds))
	for i, k := range kinds {
		all[i] = &metrics{
			total:  total.MustCurryWith(prometheus.Labels{"load": loadName, "verb": k.Verb, "resource": k.Resource}),
			unsent: unsent.WithLabelValues(loadName, k.Verb, k.Resource), seconds: seconds.WithLabelValues(loadName, k.Verb, k.Resource),
			lag: lag.WithLabelValues(loadName),
		}
	}
	return all, err
}

func (m *metrics) record(f *flight, o load.Outcome, end time.Duration) {
	counter, ok := m.byCode.Load(o)
	if !ok {
		counter, _ = m.byCode.LoadOrStore(o, m.total.WithLabelValues(o.String()))
	}
	counter.(prometheus.Counter).Inc()
	m.seconds.Observe((end - f.intended).Seconds())
	m.lag.Observe((f.taken - f.intended).Seconds())
}
