package workers

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/stormglass/stormglass/internal/metricopts"
)

// observed returns the metric families of a registry with the given observations.
func observed(t *testing.T, values ...float64) []*dto.MetricFamily {
	t.Helper()
	r := prometheus.NewRegistry()
	h := prometheus.NewHistogramVec(metricopts.Latency("stormglass_request_seconds", "Latency."), []string{"load"})
	c := prometheus.NewCounterVec(prometheus.CounterOpts{Name: "stormglass_requests_total", Help: "Requests."}, []string{"load"})
	g := prometheus.NewGauge(prometheus.GaugeOpts{Name: "stormglass_watches_open", Help: "Watches."})
	r.MustRegister(h, c, g)
	for _, v := range values {
		h.WithLabelValues("reads").Observe(v)
		c.WithLabelValues("reads").Inc()
		g.Inc()
	}
	families, err := r.Gather()
	if err != nil {
		t.Fatal(err)
	}
	packed, err := packMetrics(families)
	if err != nil {
		t.Fatal(err)
	}
	if families, err = unpackMetrics(packed); err != nil {
		t.Fatal(err)
	}
	return families
}

// The merged metrics of two workers equal the metrics of one worker that did the work of both.
func TestMergedMetricsAreThoseOfOneGenerator(t *testing.T) {
	a, b := []float64{0, 0.001, 0.02, 0.02, 3}, []float64{0.02, 0.021, 0.5, 100}
	got := mergeMetrics([][]*dto.MetricFamily{observed(t, a...), observed(t, b...), observed(t)})
	want := mergeMetrics([][]*dto.MetricFamily{observed(t, append(a, b...)...)})
	for _, all := range [][]*dto.MetricFamily{got, want} {
		for _, f := range all {
			for _, m := range f.Metric {
				if m.Histogram != nil {
					m.Histogram.CreatedTimestamp = nil
				}
				if m.Counter != nil {
					m.Counter.CreatedTimestamp = nil
				}
			}
		}
	}
	if len(got) != len(want) || len(got) != 3 {
		t.Fatalf("%d metric families, want %d", len(got), len(want))
	}
	for i := range got {
		if len(got[i].Metric) != 1 || !proto.Equal(got[i].Metric[0], want[i].Metric[0]) {
			t.Errorf("merged\n%v\nwant\n%v", got[i], want[i])
		}
	}
}

// addHistogram adds a histogram whose registry has halved its resolution at the lower resolution.
func TestHistogramsOfTwoResolutions(t *testing.T) {
	fine := &dto.Histogram{
		SampleCount: proto.Uint64(3), Schema: proto.Int32(3), ZeroThreshold: proto.Float64(1e-9),
		PositiveSpan: []*dto.BucketSpan{{Offset: proto.Int32(-3), Length: proto.Uint32(2)}, {Offset: proto.Int32(2), Length: proto.Uint32(1)}}, PositiveDelta: []int64{1, 0, 0},
	} // buckets -3, -2 and 1
	coarse := &dto.Histogram{
		SampleCount: proto.Uint64(2), Schema: proto.Int32(2), ZeroThreshold: proto.Float64(1e-9),
		PositiveSpan: []*dto.BucketSpan{{Offset: proto.Int32(1), Length: proto.Uint32(1)}}, PositiveDelta: []int64{2},
	}
	addHistogram(fine, coarse)
	// Buckets -3 and -2 become -1, and 1 becomes 1.
	if got := nativeBuckets(fine, 2); fine.GetSchema() != 2 || got[-1] != 2 || got[1] != 3 || len(got) != 2 || fine.GetSampleCount() != 5 {
		t.Errorf("unexpected buckets %v of %v", got, fine)
	}
}
