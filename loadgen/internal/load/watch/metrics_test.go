package watch

import (
	"maps"
	"math"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"

	"github.com/stormglass/stormglass/internal/metricopts"
	"github.com/stormglass/stormglass/loadgen/result"
)

// checkMetrics compares the exposed metrics with a result.
func checkMetrics(t *testing.T, registry *prometheus.Registry, want result.Watches) {
	t.Helper()
	families, err := registry.Gather()
	must(t, err)
	values := map[string]float64{}
	for _, f := range families {
		m := f.Metric[0]
		if len(m.Label) != 1 || m.Label[0].GetName() != "load" || m.Label[0].GetValue() != "watches" {
			continue // a metric of the load of writes
		}
		values[f.GetName()] = m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
	}
	for name, want := range map[string]int64{
		"stormglass_watches_open": int64(want.Open), "stormglass_watch_events_total": want.Events,
		"stormglass_watch_bytes_total": want.Bytes, "stormglass_watch_delivered_total": want.Delivered,
		"stormglass_watch_lost_total": want.Lost, "stormglass_watch_duplicated_total": want.Duplicated,
		"stormglass_watch_reordered_total": want.Reordered, "stormglass_watch_relists_total": want.Relists,
		"stormglass_watch_reconnects_total": want.Reconnects, "stormglass_watch_malformed_total": want.Malformed,
		"stormglass_watch_delivery_seconds": want.Delivery.Count,
	} {
		if got, ok := values[name]; !ok || got != float64(want) {
			t.Errorf("%s is %v (%v), want %d", name, got, ok, want)
		}
	}
}

// The histogram equals client_golang's, although it counts runs of equal values.
func TestExposedHistogramIsThatOfTheClientLibrary(t *testing.T) {
	opts := metricopts.Latency("x", "x")
	theirs := prometheus.NewHistogram(opts)
	ours := newExposed(time.Now())
	d := time.Microsecond
	for i := range 200 {
		n := int64(i%3) + 1
		ours.observe(d, n)
		for range n {
			theirs.Observe(d.Seconds())
		}
		if d *= 11; d > 100*time.Second {
			d = time.Duration(i) * time.Microsecond
		}
	}
	ours.observe(time.Millisecond, 1) // an edge
	theirs.Observe(0.001)
	var want, got dto.Metric
	must(t, theirs.Write(&want))
	ours.write(&got)
	if math.Abs(got.Histogram.GetSampleSum()-want.Histogram.GetSampleSum()) > 1e-6 {
		t.Errorf("sum %v, want %v", got.Histogram.GetSampleSum(), want.Histogram.GetSampleSum())
	}
	if g, w := natives(got.Histogram), natives(want.Histogram); !maps.Equal(g, w) {
		t.Errorf("got  %v\nwant %v", g, w)
	}
	for _, h := range []*dto.Histogram{want.Histogram, got.Histogram} {
		h.SampleSum, h.CreatedTimestamp, h.PositiveSpan, h.PositiveDelta = nil, nil, nil, nil
	}
	if !proto.Equal(got.Histogram, want.Histogram) {
		t.Errorf("got  %v\nwant %v", got.Histogram, want.Histogram)
	}
	var empty dto.Metric
	newExposed(time.Now()).write(&empty)
	if empty.Histogram.GetSampleCount() != 0 || len(empty.Histogram.PositiveSpan) != 1 {
		t.Errorf("empty: %v", empty.Histogram)
	}
}

// natives returns the native buckets that are not empty, because the same buckets can be split into spans in several ways.
func natives(h *dto.Histogram) map[int32]int64 {
	buckets := map[int32]int64{}
	index, count, at := int32(0), int64(0), 0
	for _, span := range h.PositiveSpan {
		index += span.GetOffset()
		for range span.GetLength() {
			if count += h.PositiveDelta[at]; count > 0 {
				buckets[index] = count
			}
			index, at = index+1, at+1
		}
	}
	return buckets
}
