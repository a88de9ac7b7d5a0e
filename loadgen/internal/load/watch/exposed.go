package watch

import (
	"math"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// exposed is a histogram as metricopts.Latency describes it: classic buckets from 1 ms to 64 s by powers of two,
// and a native histogram of factor 1.1. Unlike client_golang's it counts many equal values at once.
type exposed struct {
	since time.Time

	mu      sync.Mutex
	count   uint64
	sum     float64                            // seconds
	zero    uint64                             // of the native histogram
	native  [nativeHigh - nativeLow + 1]uint64 // by bucket
	classic [classicBuckets]uint64             // not cumulative
}

const (
	// Bucket i of schema 3 holds values over 2^((i-1)/8) up to 2^(i/8) seconds: the largest factor up to 1.1. From
	// 1 us to 18 hours.
	nativeSchema = 3
	nativeLow    = -160
	nativeHigh   = 128
	// zeroThreshold is client_golang's default.
	zeroThreshold  = prometheus.DefNativeHistogramZeroThreshold
	classicBuckets = 17
)

func newExposed(now time.Time) *exposed { return &exposed{since: now} }

// observe counts d n times.
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

// nativeBucket is the bucket of a value. The logarithm may be off by a rounding.
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
	// Spans of buckets that are not empty; counts as differences.
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
		// As client_golang does: it tells a native histogram without values.
		out.PositiveSpan = []*dto.BucketSpan{{Offset: proto.Int32(0), Length: proto.Uint32(0)}}
	}
	m.Histogram = out
}
