package load

import (
	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Divided is a load whose results can be merged with other shares.
type Divided interface {
	Load
	// Parts returns the results so far, by phase.
	Parts() []Part
}

// Part is what one share of a load measured in a phase. It has counts instead of quantiles, because quantiles cannot be added.
type Part struct {
	Phase    string         `json:"phase"`
	Requests []RequestsPart `json:"requests,omitempty"`
	Watches  *WatchesPart   `json:"watches,omitempty"`
	// Acknowledged writes of a load of kind "changes".
	Acknowledged int64 `json:"acknowledged,omitempty"`
}

// RequestsPart is a share's requests of one kind. The distributions of Sums are empty; the counts replace them.
type RequestsPart struct {
	Sums     result.Requests `json:"sums"`
	Latency  latency.Counts  `json:"latency"`
	External latency.Counts  `json:"external"`
	Lag      latency.Counts  `json:"lag"`
	Connect  latency.Counts  `json:"connect"`
	Service  latency.Counts  `json:"service"`
}

// WatchesPart is a share's watches. The distributions of Sums are empty; the counts replace them.
type WatchesPart struct {
	Sums            result.Watches `json:"sums"`
	OpenLatency     latency.Counts `json:"openLatency"`
	Delivery        latency.Counts `json:"delivery"`
	External        latency.Counts `json:"external"`
	SlowestPerWatch latency.Counts `json:"slowestPerWatch"`
}
