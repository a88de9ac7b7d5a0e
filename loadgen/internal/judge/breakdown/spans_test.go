package breakdown

import (
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

func TestSpansAgainstMetrics(t *testing.T) {
	for name, c := range map[string]struct {
		part     string
		metrics  float64
		most     *float64
		spans    result.SpanPart
		requests int64
		warns    bool
	}{
		"agree":                {"etcd", 0.020, nil, result.SpanPart{Seconds: 0.0215, Error: 0.0001}, 100, false},
		"differ":               {"etcd", 0.020, nil, result.SpanPart{Seconds: 0.025, Error: 0.0001}, 100, true},
		"too few traces":       {"etcd", 0.020, nil, result.SpanPart{Seconds: 0.025, Error: 0.0001}, 29, false},
		"within the error":     {"etcd", 0.020, nil, result.SpanPart{Seconds: 0.025, Error: 0.002}, 100, false},
		"within the bounds":    {"fairness", 0.010, new(0.030), result.SpanPart{Seconds: 0.031, Error: 0.0001}, 100, false},
		"above the bounds":     {"fairness", 0.010, new(0.030), result.SpanPart{Seconds: 0.040, Error: 0.0001}, 100, true},
		"small":                {"etcd", 0.001, nil, result.SpanPart{Seconds: 0.002, Error: 0.0001}, 100, false},
		"plugins have no span": {"admission", 0.020, nil, result.SpanPart{Seconds: 0.001, Error: 0.0001}, 100, false},
	} {
		row := result.Breakdown{Phase: "p", Load: "l", Verb: "POST", Resource: "pods", ClientMean: 0.1, Parts: []result.BreakdownPart{{Name: c.part, Seconds: c.metrics, Most: c.most}}}
		other := row
		other.Phase = "q"
		c.spans.Name = c.part
		rows := []result.Breakdown{row, other}
		CompareSpans(rows, []result.SpanParts{{Phase: "p", Load: "l", Verb: "POST", Resource: "pods", Requests: c.requests, Parts: []result.SpanPart{c.spans}}})
		if warns := len(rows[0].Warnings) > 0; warns != c.warns || len(rows[1].Warnings) > 0 {
			t.Errorf("%s: warnings %q and %q", name, rows[0].Warnings, rows[1].Warnings)
		}
		if known := rows[0].Parts[0].Spans != nil; known != (c.requests >= minTraces) {
			t.Errorf("%s: the part has the spans' time: %t", name, known)
		}
	}
}
