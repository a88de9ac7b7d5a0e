package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Name prefixes of the nodes that only register. Several such nodes are needed, because a kubelet sends requests until
// it sees its own Node, and the time until then varies.
const (
	moreReal      = "real-more-"
	moreSimulated = "simulated-more-"
)

const (
	registerEvery = 3 * time.Second // mean time between the starts of two kubelets
	// runAtOnce is the number of kubelets that run at the same time. It is large enough that each kubelet runs for 10
	// s, after which it creates its Lease.
	runAtOnce = 7
)

// register counts the requests with which nodes register. The last node of each kind and its kube-proxy keep running.
func (l *lab) register(ctx context.Context, o options, log *reader) (map[string]counts, error) {
	c := both()
	if err := l.registerMore(ctx, o, log, c); err != nil {
		return nil, err
	}
	return c, l.count(ctx, log, c, func() error {
		if _, err := l.node.Join(ctx, realNode); err != nil {
			return err
		}
		if err := l.startProxy(ctx, o.kubeProxy); err != nil {
			return err
		}
		if _, err := l.startFleet(ctx, strings.TrimSuffix(simulatedNode, "0"), 1, true); err != nil {
			return err
		}
		return l.awaitReady(ctx, nodes)
	}, renewal)
}

func (l *lab) registerMore(ctx context.Context, o options, log *reader, c map[string]counts) error {
	more := o.registrations - 1
	if more == 0 {
		return nil
	}
	real, simulated := named(moreReal, more), named(moreSimulated, more)
	var stops []func()
	err := l.count(ctx, log, c, func() error {
		err := paced(ctx, more, registerEvery, l.rng, func(i int) error {
			if first := i - runAtOnce; first >= 0 {
				if err := l.awaitReady(ctx, real[first:first+1]); err != nil {
					return err
				}
				stops[first]()
			}
			stop, err := l.node.Join(ctx, real[i])
			stops = append(stops, stop)
			return err
		})
		if err != nil {
			return err
		}
		stop, err := l.startFleet(ctx, moreSimulated, more, false)
		stops = append(stops, stop)
		if err != nil {
			return err
		}
		return l.awaitReady(ctx, slices.Concat(real[max(0, more-runAtOnce):], simulated))
	}, renewal)
	if err != nil {
		return err
	}
	for _, stop := range stops {
		stop()
	}
	if err := l.unregister(ctx, slices.Concat(real, simulated)); err != nil {
		return err
	}
	_, err = log.read(both())
	return err
}

func named(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(prefix, i))
	}
	return names
}
