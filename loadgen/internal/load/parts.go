package load

import (
	"github.com/stormglass/stormglass/loadgen/internal/latency"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Divided is a load that can be divided among workers. The results of the workers can be merged.
type Divided interface {
	Load
	// Parts returns the results so far, by phase.
	Parts() []Part
}

// Part is the result of one worker's share of a load in one phase. It contains histogram counts, because the quantiles
// of several workers cannot be merged.
type Part struct {
	Phase    string         `json:"phase"`
	Requests []RequestsPart `json:"requests,omitempty"`
	Watches  *WatchesPart   `json:"watches,omitempty"`
	// Acknowledged is the number of acknowledged writes of a load of kind "changes".
	Acknowledged int64 `json:"acknowledged,omitempty"`
}

// RequestsPart is the result of the requests of one kind. The distributions in Sums are empty; the other fields replace
// them.
type RequestsPart struct {
	Sums     result.Requests `json:"sums"`
	Latency  latency.Counts  `json:"latency"`
	External latency.Counts  `json:"external"`
	Lag      latency.Counts  `json:"lag"`
	Connect  latency.Counts  `json:"connect"`
	Service  latency.Counts  `json:"service"`
}

// WatchesPart is the result of the watches. The distributions in Sums are empty; the other fields replace them.
type WatchesPart struct {
	Sums            result.Watches `json:"sums"`
	OpenLatency     latency.Counts `json:"openLatency"`
	Delivery        latency.Counts `json:"delivery"`
	External        latency.Counts `json:"external"`
	SlowestPerWatch latency.Counts `json:"slowestPerWatch"`
}
