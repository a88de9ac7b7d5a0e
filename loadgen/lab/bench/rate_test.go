package bench

import (
	"context"
	"fmt"
	"testing"
	"time"
)

// BenchmarkRate offers GETs of a ConfigMap of 1 KB at a constant rate for 5 s, open loop.
func BenchmarkRate(b *testing.B) { compareAll(b) }

func rateComparisons() []comparison {
	var all []comparison
	for _, perSecond := range []float64{20_000, 30_000} {
		all = append(all, comparison{
			name:  fmt.Sprintf("rate=%.0f", perSecond),
			sides: []side{{"ours", rate(asked{"get", perSecond, 1})}},
		})
	}
	return all
}

// rate offers a load for 5 s. It returns how much of it was sent, how late, and at what cost.
func rate(a asked) func(context.Context, job) ([]figure, error) {
	const length = 5 * time.Second
	return func(ctx context.Context, _ job) ([]figure, error) {
		stub, err := startStub(ChildFill{N: listed, Size: 1024})
		if err != nil {
			return nil, err
		}
		defer stub.Close()
		r, err := newLoad(ctx, a, stub)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, length)
		defer cancel()
		used, err := costOf(func() error { return r.Run(ctx) })
		if err != nil {
			return nil, err
		}
		served, err := stub.Cost()
		if err != nil {
			return nil, err
		}
		all := r.Results()[""]
		if len(all) != 1 || all[0].Succeeded != all[0].Sent || served.Requests != all[0].Sent {
			return nil, fmt.Errorf("results %+v; %d served", all, served.Requests)
		}
		got := all[0]
		cores := used.cpu.Seconds() / length.Seconds()
		return append(used.per(got.Sent, "request"),
			figure{"requests/s", got.AchievedRate},
			figure{"unsent", float64(got.Unsent)},
			figure{"cores", cores},
			figure{"requests/s/core", got.AchievedRate / cores},
			figure{"lag-p50-ms", got.Lag.P50 * 1e3},
			figure{"lag-p99-ms", got.Lag.P99 * 1e3},
			figure{"latency-p99-ms", got.Latency.P99 * 1e3},
			figure{"wire-B/request", float64(served.Received+served.Sent) / float64(max(served.Requests, 1))},
			figure{"stub-cpu-µs/request", float64(served.CPU.Nanoseconds()) / 1e3 / float64(max(served.Requests, 1))},
		), nil
	}
}
