package breakdown

import (
	"fmt"
	"slices"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

// Thresholds for a difference between metrics and spans: 10% of the metrics' value, and two standard errors of the spans'
// mean. CompareSpans ignores parts below 5% of the latency, and spans of fewer than 30 requests.
const (
	differs        = 0.1
	standardErrors = 2
	minPart        = 0.05
	minTraces      = 30
)

// CompareSpans adds the times of spans to the parts of the breakdown, and warns about parts for which metrics and spans
// differ.
func CompareSpans(rows []result.Breakdown, all []result.SpanParts) {
	for i := range rows {
		b := &rows[i]
		at := slices.IndexFunc(all, func(s result.SpanParts) bool {
			return s.Phase == b.Phase && s.Load == b.Load && s.Verb == b.Verb && s.Resource == b.Resource
		})
		if at < 0 || all[at].Requests < minTraces {
			continue
		}
		for j := range b.Parts {
			p := &b.Parts[j]
			k := slices.IndexFunc(all[at].Parts, func(s result.SpanPart) bool { return s.Name == p.Name })
			if k < 0 {
				continue
			}
			s := all[at].Parts[k]
			p.Spans = &s.Seconds
			least, most := p.Seconds, p.Seconds
			if p.Most != nil {
				most = *p.Most
			}
			if p.Name == result.PartAdmission {
				least = 0 // spans show webhooks only
			}
			margin := standardErrors * s.Error
			if max(most, s.Seconds) < minPart*b.ClientMean || s.Seconds+margin >= least*(1-differs) && s.Seconds-margin <= most*(1+differs) {
				continue
			}
			b.Warnings = append(b.Warnings, fmt.Sprintf("%s took %s by metrics, but %s by the spans of %d traced requests", p.Name, duration(p.Seconds), duration(s.Seconds), all[at].Requests))
		}
	}
}

func duration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(10 * time.Microsecond)
}
