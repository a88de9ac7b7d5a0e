package runmetrics

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"

	"github.com/stormglass/stormglass/loadgen/internal/archive"
)

// maxTime is later than the time of any sample, in ms.
const maxTime = math.MaxInt64 / 2

// writeOpenMetrics writes the samples of q from start to end, in ms, as OpenMetrics text with timestamps. It returns the
// number of samples. It omits staleness markers, because the format cannot represent them.
func writeOpenMetrics(ctx context.Context, w io.Writer, q storage.Queryable, start, end int64) (samples int, err error) {
	names, err := metricNames(ctx, q, start, end)
	if err != nil {
		return 0, err
	}
	out := bufio.NewWriterSize(w, 1<<16)
	line := &textLine{}
	for _, name := range names { // the lines of a family must be contiguous
		err := archive.Stream(ctx, q, start, end, func(l labels.Labels, points []promql.FPoint) error {
			line.begin(l)
			for _, p := range points {
				if value.IsStaleNaN(p.F) {
					continue
				}
				samples++
				if _, err := out.Write(line.with(p)); err != nil {
					return err
				}
			}
			return nil
		}, archive.Equal(model.MetricNameLabel, name))
		if err != nil {
			return samples, err
		}
	}
	if _, err := out.WriteString("# EOF\n"); err != nil {
		return samples, err
	}
	return samples, out.Flush()
}

func metricNames(ctx context.Context, q storage.Queryable, start, end int64) ([]string, error) {
	opened, err := q.Querier(start, end)
	if err != nil {
		return nil, fmt.Errorf("read names: %w", err)
	}
	defer opened.Close()
	names, _, err := opened.LabelValues(ctx, model.MetricNameLabel, nil)
	if err != nil {
		return nil, fmt.Errorf("read names: %w", err)
	}
	for i := range names { // names may point into a file that is closed with the querier
		names[i] = strings.Clone(names[i])
	}
	return names, nil
}

// textLine formats the lines of one series as OpenMetrics.
type textLine struct {
	series int // length of the series at the start of text
	text   []byte
}

// begin formats the start of each line, the series: name{label="value"}, or {"a name"} for a name that needs quotes.
func (t *textLine) begin(l labels.Labels) {
	t.text = t.text[:0]
	name := l.Get(model.MetricNameLabel)
	sep := "{"
	if model.LegacyValidation.IsValidMetricName(name) {
		t.text = append(t.text, name...)
	} else {
		t.text = append(t.text, '{')
		t.quote(name)
		sep = ","
	}
	l.Range(func(l labels.Label) {
		if l.Name == model.MetricNameLabel {
			return
		}
		t.text = append(t.text, sep...)
		sep = ","
		if model.LegacyValidation.IsValidLabelName(l.Name) {
			t.text = append(t.text, l.Name...)
		} else {
			t.quote(l.Name)
		}
		t.text = append(t.text, '=')
		t.quote(l.Value)
	})
	if sep == "," {
		t.text = append(t.text, '}')
	}
	t.text = append(t.text, ' ')
	t.series = len(t.text)
}

// with returns the line for one point of the series. The result is valid until the next call.
func (t *textLine) with(p promql.FPoint) []byte {
	t.text = t.text[:t.series]
	switch {
	case math.IsInf(p.F, 1):
		t.text = append(t.text, "+Inf"...)
	case math.IsInf(p.F, -1):
		t.text = append(t.text, "-Inf"...)
	default:
		t.text = strconv.AppendFloat(t.text, p.F, 'g', -1, 64) // NaN is "NaN"
	}
	t.text = append(t.text, ' ')
	t.text = strconv.AppendFloat(t.text, seconds(p.T), 'f', -1, 64)
	return append(t.text, '\n')
}

func (t *textLine) quote(text string) {
	t.text = append(t.text, '"')
	for i := range len(text) {
		switch c := text[i]; c {
		case '\\', '"':
			t.text = append(t.text, '\\', c)
		case '\n':
			t.text = append(t.text, '\\', 'n')
		default:
			t.text = append(t.text, c)
		}
	}
	t.text = append(t.text, '"')
}

// seconds converts ms to the smallest number of seconds that Prometheus' parser converts back to ms. The parser
// multiplies by 1,000 and truncates, so 1800000000.001 would lose a millisecond.
func seconds(ms int64) float64 {
	s := float64(ms) / 1000
	for int64(s*1000) < ms {
		s = math.Nextafter(s, math.Inf(1))
	}
	return s
}
