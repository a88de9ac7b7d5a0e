package main

import (
	"context"
	"fmt"
	"time"

	"github.com/stormglass/stormglass/internal/stubapi"
)

// cases are all benchmarks.
func cases() []benchmark {
	all := []benchmark{{
		name: "watch",
		what: "watches of one ConfigMap, 20 writes a second, events of 1.5 KB",
		sides: []side{
			{"ours", drain(ourWatches("json"))},
			{"net/http, our scanner", drain(newHTTPWatches)},
			{"client-go typed watch", drain(typedWatch(jsonType))},
			{"client-go informer", drain(newInformers)},
		},
	}, {
		name: "watch-protobuf",
		what: "the same in protobuf",
		sides: []side{
			{"ours", drain(ourWatches("protobuf"))},
			{"client-go typed watch", drain(typedWatch(protobufType))},
		},
	}}
	for _, c := range []struct {
		asked
		what string
	}{
		{asked{"get", 6000, 1}, "GET of a ConfigMap of 1 KB, 6,000 a second, open loop"},
		{asked{"get", 2000, 1}, "GET of a ConfigMap of 1 KB, 2,000 a second, open loop"},
		{asked{"patch", 2000, 1}, "merge patch of 1 KB, 2,000 a second, open loop"},
		{asked{"list", 200, 10}, "LIST of 100 ConfigMaps of 1 KB, 200 a second, open loop"},
	} {
		all = append(all, benchmark{name: fmt.Sprintf("requests-%s-%.0f", c.verb, c.perSecond), what: c.what, sides: []side{
			{"ours", c.against(ourRequests)},
			{"net/http, undecoded", c.against(theirs(httpCalls))},
			{"client-go typed", c.against(theirs(typedCalls))},
			{"client-go dynamic", c.against(theirs(dynamicCalls))},
		}})
	}
	for _, perSecond := range []float64{20_000, 30_000} {
		all = append(all, benchmark{
			name:  fmt.Sprintf("rate-%.0f", perSecond),
			what:  fmt.Sprintf("GET of 1 KB at %.0f a second, open loop, for 5 s", perSecond),
			sides: []side{{"ours", rate(asked{"get", perSecond, 1})}},
		})
	}
	return append(all, nodeCases()...)
}

// startStub starts a stub with the ConfigMaps of a benchmark.
func startStub(fill stubapi.ChildFill) (*stubapi.Child, error) {
	stub, err := stubapi.StartChild()
	if err != nil {
		return nil, err
	}
	fill.Namespace, fill.Prefix = namespace, object
	if err := stub.Fill(fill); err != nil {
		stub.Close()
		return nil, err
	}
	return stub, nil
}

// rate offers a rate for 5 s and says what of it was sent, how late, and at
// what cost.
func rate(a asked) func(context.Context, job) ([]figure, error) {
	const length = 5 * time.Second
	return func(ctx context.Context, _ job) ([]figure, error) {
		stub, err := startStub(stubapi.ChildFill{N: listed, Size: 1024})
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
			figure{"requests per second", "", got.AchievedRate},
			figure{"unsent", "", float64(got.Unsent)},
			figure{"CPU cores", "", cores},
			figure{"requests per second and core", "", got.AchievedRate / cores},
			figure{"scheduling lag p50", "ms", got.Lag.P50 * 1e3},
			figure{"scheduling lag p99", "ms", got.Lag.P99 * 1e3},
			figure{"latency p99", "ms", got.Latency.P99 * 1e3},
			figure{"stub's CPU per request", "us", float64(served.CPU.Nanoseconds()) / 1e3 / float64(max(served.Requests, 1))},
		), nil
	}
}
