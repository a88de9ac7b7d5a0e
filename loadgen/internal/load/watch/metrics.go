package watch

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// collector exposes the metrics of a load of kind "watches", with the label "load". At each scrape, it adds up the
// counts of all connections.
type collector struct{ set *Watches }

func (c collector) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, out) }

func (c collector) Collect(out chan<- prometheus.Metric) {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, nil, prometheus.Labels{"load": c.set.load.Name})
	}
	value := func(kind prometheus.ValueType, v int64, name, help string) {
		out <- prometheus.MustNewConstMetric(desc(name, help), kind, float64(v))
	}
	const counter = prometheus.CounterValue
	t := c.set.totals()
	value(counter, t.events, "stormglass_watch_events_total", "Watch events read, including bookmarks and events of other clients' writes.")
	value(counter, t.bytes, "stormglass_watch_bytes_total", "Bytes of watch events read.")
	value(counter, t.delivered, "stormglass_watch_delivered_total", "First deliveries of measured writes.")
	value(counter, t.lost, "stormglass_watch_lost_total",
		"Deliveries of acknowledged writes that count as lost, because they did not happen before the end of the drain, or before the write was forgotten.")
	value(counter, t.duplicated, "stormglass_watch_duplicated_total",
		"Repeated deliveries of the same change to the same watch.")
	value(counter, t.reordered, "stormglass_watch_reordered_total", "Events older than one that the same watch has seen.")
	value(counter, t.relists, "stormglass_watch_relists_total", "Watches that had to list again (410).")
	value(counter, t.reconnects, "stormglass_watch_reconnects_total",
		"Watches that ended and were resumed by resourceVersion.")
	value(counter, t.malformed, "stormglass_watch_malformed_total",
		"Watch streams closed by the load generator because they contained data other than events.")
	value(prometheus.GaugeValue, c.set.open.Load(), "stormglass_watches_open", "Watches that are established.")
	delivery := desc("stormglass_watch_delivery_seconds", "From a write's acknowledgement to its delivery on a watch.")
	out <- exposedMetric{delivery, c.set.exposed, c.set.load.Name}
}

func (c collector) register(reg prometheus.Registerer) error {
	if reg == nil {
		return nil
	}
	if err := reg.Register(c); err != nil {
		return fmt.Errorf("register metrics of load %s: %w", c.set.load.Name, err)
	}
	return nil
}

type exposedMetric struct {
	desc *prometheus.Desc
	h    *exposed
	load string
}

func (m exposedMetric) Desc() *prometheus.Desc { return m.desc }

func (m exposedMetric) Write(out *dto.Metric) error {
	name := "load"
	out.Label = []*dto.LabelPair{{Name: &name, Value: &m.load}}
	m.h.write(out)
	return nil
}

// exposed is a Prometheus histogram with the buckets of metricopts.Latency: classic buckets from 1 ms to 64 s, each
// twice as wide as the previous one, and native buckets with a factor of 1.1. In contrast to a histogram of
// client_golang, one call can record the same value many times.
type exposed struct {
	since time.Time

	mu      sync.Mutex
	count   uint64
	sum     float64                            // sum of the values, in seconds
	zero    uint64                             // count of the native histogram's zero bucket
	native  [nativeHigh - nativeLow + 1]uint64 // counts of the native buckets
	classic [classicBuckets]uint64             // counts of the classic buckets, not cumulative
}

const (
	// In schema 3, bucket i contains the values above 2^((i-1)/8) and up to 2^(i/8) seconds. Schema 3 is the coarsest
	// schema in which a bucket is at most 1.1 times as wide as the previous one. The buckets cover 1 us to 18 hours.
	nativeSchema = 3
	nativeLow    = -160
	nativeHigh   = 128
	// zeroThreshold is client_golang's default.
	zeroThreshold  = prometheus.DefNativeHistogramZeroThreshold
	classicBuckets = 17
)

func newExposed(now time.Time) *exposed { return &exposed{since: now} }

// observe records d n times.
func (h *exposed) observe(d time.Duration, n int64) {
	if n <= 0 {
		return
	}
	seconds := max(d, 0).Seconds()
	index, bucket := -1, 0
	if seconds > zeroThreshold {
		index = nativeBucket(seconds) - nativeLow
		for bucket < classicBuckets && seconds > classicEdge(bucket) {
			bucket++
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.count += uint64(n)
	h.sum += seconds * float64(n)
	if bucket < classicBuckets {
		h.classic[bucket] += uint64(n)
	}
	if index < 0 {
		h.zero += uint64(n)
	} else {
		h.native[index] += uint64(n)
	}
}

func classicEdge(i int) float64 { return math.Ldexp(0.001, i) }

// nativeBucket returns the index of the native bucket for a value. It corrects the rounding error of the logarithm.
func nativeBucket(v float64) int {
	edge := func(i int) float64 { return math.Exp2(float64(i) / (1 << nativeSchema)) }
	i := int(math.Ceil(math.Log2(v) * (1 << nativeSchema)))
	for v <= edge(i-1) {
		i--
	}
	for v > edge(i) {
		i++
	}
	return max(nativeLow, min(nativeHigh, i))
}

func (h *exposed) write(m *dto.Metric) {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := &dto.Histogram{
		SampleCount: proto.Uint64(h.count), SampleSum: proto.Float64(h.sum),
		CreatedTimestamp: timestamppb.New(h.since),
		Schema:           proto.Int32(nativeSchema), ZeroThreshold: proto.Float64(zeroThreshold), ZeroCount: proto.Uint64(h.zero),
	}
	var sum uint64
	for i, n := range h.classic {
		sum += n
		out.Bucket = append(out.Bucket, &dto.Bucket{UpperBound: proto.Float64(classicEdge(i)), CumulativeCount: proto.Uint64(sum)})
	}
	// Spans list the buckets that are not empty. Each count is encoded as the difference from the previous one.
	last, next := int64(0), int32(0)
	for i, n := range h.native {
		if n == 0 {
			continue
		}
		index := int32(i + nativeLow)
		if spans := out.PositiveSpan; len(spans) > 0 && index == next {
			*spans[len(spans)-1].Length++
		} else {
			out.PositiveSpan = append(spans, &dto.BucketSpan{Offset: proto.Int32(index - next), Length: proto.Uint32(1)})
		}
		out.PositiveDelta = append(out.PositiveDelta, int64(n)-last)
		last, next = int64(n), index+1
	}
	if len(out.PositiveSpan) == 0 && h.zero == 0 {
		// As in client_golang, an empty span marks a native histogram without values.
		out.PositiveSpan = []*dto.BucketSpan{{Offset: proto.Int32(0), Length: proto.Uint32(0)}}
	}
	m.Histogram = out
}
