package remotewrite

import (
	"strings"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/prompb"
	"github.com/prometheus/prometheus/promql"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// batch is the content of one request.
type batch struct {
	series  []prompb.TimeSeries
	samples int64
}

// builder fills batches. The samples of a series are in order, in one batch or in
// several after each other.
type builder struct {
	more map[string]string
	full []batch
	open batch
}

func (b *builder) add(own labels.Labels, points []promql.FPoint) {
	with := prompb.FromLabels(archive.AddLabels(own, b.more), nil)
	for i := range with { // they may be in a file that is closed before they are sent
		with[i].Name, with[i].Value = strings.Clone(with[i].Name), strings.Clone(with[i].Value)
	}
	for len(points) > 0 {
		n := min(len(points), batchSamples-int(b.open.samples))
		samples := make([]prompb.Sample, n)
		for i, p := range points[:n] {
			samples[i] = prompb.Sample{Timestamp: p.T, Value: p.F}
		}
		points = points[n:]
		b.open.series = append(b.open.series, prompb.TimeSeries{Labels: with, Samples: samples})
		if b.open.samples += int64(n); b.open.samples == batchSamples {
			b.full, b.open = append(b.full, b.open), batch{}
		}
	}
}

func (b *builder) batches() []batch {
	if b.open.samples > 0 {
		b.full, b.open = append(b.full, b.open), batch{}
	}
	return b.full
}

// oneLine is an error as one line of bounded length.
func oneLine(err error) string {
	const atMost = 300
	text := strings.Join(strings.Fields(err.Error()), " ")
	if len(text) > atMost {
		text = strings.ToValidUTF8(text[:atMost], "") + "..."
	}
	return text
}
