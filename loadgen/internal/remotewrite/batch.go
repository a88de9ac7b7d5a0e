package remotewrite

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/promql"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// batch is one encoded write request. builder encodes samples immediately, because their labels may point into a file
// that is closed before the client sends the request. Encoded samples also take only a third of the memory.
type batch struct {
	body    []byte
	samples int64
	first   int64 // time of the earliest sample, in ms
}

// Size returns the length of the encoded request. client_golang requires this method.
func (b batch) Size() int { return len(b.body) }

// MarshalToSizedBuffer copies the encoded request to into. client_golang requires this method.
func (b batch) MarshalToSizedBuffer(into []byte) (int, error) { return copy(into, b.body), nil }

// builder encodes samples into batches. Add the samples of a series in chronological order.
type builder struct {
	more    map[string]string // labels to add to each series
	full    []batch
	open    batch
	labels  []prompb.Label // buffer for the labels of one series, reused
	samples []prompb.Sample
}

// timeseriesTag is the protobuf tag of a series in prometheus.WriteRequest: field 1, length-delimited.
const timeseriesTag = 1<<3 | 2

func (b *builder) add(own labels.Labels, points []promql.FPoint) error {
	b.labels = prompb.FromLabels(archive.AddLabels(own, b.more), b.labels)
	for len(points) > 0 {
		n := min(len(points), batchSamples-int(b.open.samples))
		b.samples = b.samples[:0]
		for _, p := range points[:n] {
			b.samples = append(b.samples, prompb.Sample{Timestamp: p.T, Value: p.F})
		}
		series := prompb.TimeSeries{Labels: b.labels, Samples: b.samples}
		size := series.Size()
		body := binary.AppendUvarint(append(b.open.body, timeseriesTag), uint64(size))
		body = slices.Grow(body, size)
		body = body[:len(body)+size]
		if _, err := series.MarshalToSizedBuffer(body[len(body)-size:]); err != nil {
			return err
		}
		if b.open.samples == 0 || points[0].T < b.open.first {
			b.open.first = points[0].T
		}
		b.open.body, b.open.samples = body, b.open.samples+int64(n)
		points = points[n:]
		if b.open.samples == batchSamples {
			b.full, b.open = append(b.full, b.open), batch{}
		}
	}
	return nil
}

func (b *builder) batches() []batch {
	if b.open.samples > 0 {
		b.full, b.open = append(b.full, b.open), batch{}
	}
	return b.full
}

// oneLine returns an error as one line of limited length.
func oneLine(err error) string {
	const atMost = 300
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > atMost {
		text = strings.ToValidUTF8(text[:atMost], "") + "..."
	}
	return text
}
