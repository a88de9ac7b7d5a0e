package workers

import (
	"cmp"
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
)

// metricsWithin is the time limit to collect the metrics of all workers during a scrape.
const metricsWithin = 2 * time.Second

// Register registers a collector for the sums of the workers' load metrics. Each series then has the value that a
// single generator would report.
func (f *Fleet) Register(registry prometheus.Registerer) error {
	if f == nil {
		return nil
	}
	return registry.Register(collector{f})
}

type collector struct{ fleet *Fleet }

// Describe sends no descriptors, because the metrics depend on the scenario.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect requests the metrics of all workers and sends their sums. If a worker does not reply, Collect uses the
// metrics that the worker sent last.
func (c collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), metricsWithin)
	defer cancel()
	all := c.fleet.joined()
	if len(all) < c.fleet.options.Count || c.fleet.recorder() == nil {
		return
	}
	_ = c.fleet.callAll(ctx, call{Verb: verbMetrics}) // on an error, Collect uses the last metrics
	var sets [][]*dto.MetricFamily
	for _, m := range all {
		m.mu.Lock()
		packed := m.metrics
		m.mu.Unlock()
		if families, err := unpackMetrics(packed); err == nil {
			sets = append(sets, families)
		}
	}
	for _, family := range mergeMetrics(sets) {
		desc := prometheus.NewDesc(family.GetName(), family.GetHelp(), nil, nil)
		for _, m := range family.GetMetric() {
			out <- merged{desc, m}
		}
	}
}

// merged is one series with the sum over all workers.
type merged struct {
	desc   *prometheus.Desc
	metric *dto.Metric
}

func (m merged) Desc() *prometheus.Desc { return m.desc }

func (m merged) Write(out *dto.Metric) error {
	proto.Merge(out, m.metric)
	return nil
}

func packMetrics(families []*dto.MetricFamily) ([][]byte, error) {
	packed := [][]byte{}
	for _, f := range families {
		data, err := proto.Marshal(f)
		if err != nil {
			return nil, err
		}
		packed = append(packed, data)
	}
	return packed, nil
}

func unpackMetrics(packed [][]byte) (families []*dto.MetricFamily, err error) {
	for _, data := range packed {
		f := &dto.MetricFamily{}
		if err := proto.Unmarshal(data, f); err != nil {
			return nil, err
		}
		if f.GetName() == "" {
			return nil, errors.New("a metric family has no name")
		}
		families = append(families, f)
	}
	return families, nil
}

// mergeMetrics adds up series with equal names and labels. The result is sorted by name and labels.
func mergeMetrics(sets [][]*dto.MetricFamily) []*dto.MetricFamily {
	byName := map[string]*dto.MetricFamily{}
	series := map[string]*dto.Metric{}
	var names []string
	for _, families := range sets {
		for _, f := range families {
			sum := byName[f.GetName()]
			if sum == nil {
				sum = &dto.MetricFamily{Name: f.Name, Help: f.Help, Type: f.Type}
				byName[f.GetName()] = sum
				names = append(names, f.GetName())
			}
			for _, m := range f.GetMetric() {
				key := f.GetName() + labelKey(m)
				if have := series[key]; have != nil {
					addMetric(have, m)
					continue
				}
				series[key] = m
				sum.Metric = append(sum.Metric, m)
			}
		}
	}
	slices.Sort(names)
	all := make([]*dto.MetricFamily, len(names))
	for i, name := range names {
		all[i] = byName[name]
		slices.SortFunc(all[i].Metric, func(a, b *dto.Metric) int { return cmp.Compare(labelKey(a), labelKey(b)) })
	}
	return all
}

func labelKey(m *dto.Metric) string {
	var b strings.Builder
	for _, l := range m.GetLabel() { // registries sort the labels
		b.WriteString("\x00" + l.GetName() + "\x01" + l.GetValue())
	}
	return b.String()
}

func addMetric(to, from *dto.Metric) {
	switch {
	case to.Counter != nil && from.Counter != nil:
		to.Counter.Value = proto.Float64(to.Counter.GetValue() + from.Counter.GetValue())
	case to.Gauge != nil && from.Gauge != nil:
		to.Gauge.Value = proto.Float64(to.Gauge.GetValue() + from.Gauge.GetValue())
	case to.Histogram != nil && from.Histogram != nil:
		addHistogram(to.Histogram, from.Histogram)
	}
}

func addHistogram(to, from *dto.Histogram) {
	to.SampleCount = proto.Uint64(to.GetSampleCount() + from.GetSampleCount())
	to.SampleSum = proto.Float64(to.GetSampleSum() + from.GetSampleSum())
	counts := map[float64]uint64{}
	for _, b := range from.GetBucket() {
		counts[b.GetUpperBound()] = b.GetCumulativeCount()
	}
	for _, b := range to.GetBucket() {
		b.CumulativeCount = proto.Uint64(b.GetCumulativeCount() + counts[b.GetUpperBound()])
		b.Exemplar = nil
	}
	if from.CreatedTimestamp != nil && (to.CreatedTimestamp == nil || from.CreatedTimestamp.AsTime().Before(to.CreatedTimestamp.AsTime())) {
		to.CreatedTimestamp = from.CreatedTimestamp
	}
	if to.Schema == nil || from.Schema == nil {
		return
	}
	to.ZeroCount = proto.Uint64(to.GetZeroCount() + from.GetZeroCount())
	to.ZeroThreshold = proto.Float64(math.Max(to.GetZeroThreshold(), from.GetZeroThreshold()))
	// client_golang halves the resolution of a native histogram that has too many buckets, so the resolutions of from
	// and to may differ. The sum has the coarser resolution.
	schema := min(to.GetSchema(), from.GetSchema())
	buckets := nativeBuckets(to, schema)
	for i, n := range nativeBuckets(from, schema) {
		buckets[i] += n
	}
	to.Schema = proto.Int32(schema)
	to.PositiveSpan, to.PositiveDelta = nativeSpans(buckets)
}

// nativeBuckets returns the counts of a native histogram by bucket index, at the resolution of schema. schema must not
// exceed h's own schema. nativeBuckets ignores buckets of negative values, because durations are never negative.
func nativeBuckets(h *dto.Histogram, schema int32) map[int32]int64 {
	buckets := map[int32]int64{}
	shift := h.GetSchema() - schema
	index, count, at := int32(0), int64(0), 0
	for _, span := range h.GetPositiveSpan() {
		index += span.GetOffset()
		for range span.GetLength() {
			if at >= len(h.GetPositiveDelta()) {
				return buckets
			}
			count += h.GetPositiveDelta()[at]
			at++
			// Bucket i ends at 2^(i/2^schema). At the next lower schema it is part of bucket (i+1)/2, rounded down.
			coarse := index
			for range shift {
				coarse = (coarse + 1) >> 1
			}
			buckets[coarse] += count
			index++
		}
	}
	return buckets
}

// nativeSpans encodes buckets in the format of a native histogram. spans are ranges of consecutive buckets, and deltas
// the differences between consecutive counts.
func nativeSpans(buckets map[int32]int64) (spans []*dto.BucketSpan, deltas []int64) {
	indexes := make([]int32, 0, len(buckets))
	for i := range buckets {
		indexes = append(indexes, i)
	}
	slices.Sort(indexes)
	last, next := int64(0), int32(0)
	for _, i := range indexes {
		if len(spans) > 0 && i == next {
			*spans[len(spans)-1].Length++
		} else {
			spans = append(spans, &dto.BucketSpan{Offset: proto.Int32(i - next), Length: proto.Uint32(1)})
		}
		deltas = append(deltas, buckets[i]-last)
		last, next = buckets[i], i+1
	}
	if spans == nil { // client_golang represents an empty native histogram like this
		spans = []*dto.BucketSpan{{Offset: proto.Int32(0), Length: proto.Uint32(0)}}
	}
	return spans, deltas
}
