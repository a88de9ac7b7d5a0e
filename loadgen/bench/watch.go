package main

import (
	"context"
	"fmt"
	"time"

	"github.com/stormglass/stormglass/internal/stubapi"
)

const (
	namespace = "storm"
	object    = "bench" // the prefix of the stub's objects
	eventSize = 1200    // of the payload: with its metadata an event has 1.5 KB
	// perSecond is how fast the stub writes: far below what either side can
	// take, so that none saves by doing much at once.
	perSecond = 20
)

// drainer is one side of the watch benchmark.
type drainer interface {
	// open opens n watches; it may return before they are established.
	open(ctx context.Context, n int) error
	// events is how many change events were delivered.
	events() int64
	close()
}

// drain opens watches, and measures what the events cost.
func drain(start func(*stubapi.Child) (drainer, error)) func(context.Context, job) ([]figure, error) {
	return func(ctx context.Context, j job) ([]figure, error) {
		fill := stubapi.ChildFill{N: 1, Size: eventSize, Labels: map[string]string{"stormglass.dev/load": object}}
		stub, err := startStub(fill)
		if err != nil {
			return nil, err
		}
		defer stub.Close()
		d, err := start(stub)
		if err != nil {
			return nil, err
		}
		defer d.close()
		empty, err := memoryNow()
		if err != nil {
			return nil, err
		}
		opened, err := costOf(func() error {
			if err := d.open(ctx, j.Watches); err != nil {
				return err
			}
			return await(func() (bool, error) {
				c, err := stub.Cost()
				return c.Watches >= j.Watches, err
			})
		})
		if err != nil {
			return nil, fmt.Errorf("open the watches: %w", err)
		}
		before := d.events()
		round := func(writes int) error {
			want := d.events() + int64(writes)*int64(j.Watches)
			storm := stubapi.ChildStorm{Namespace: namespace, Prefix: object, Objects: 1, Writes: writes, PerSecond: perSecond}
			if err := stub.Storm(storm); err != nil {
				return err
			}
			return await(func() (bool, error) { return d.events() >= want, nil })
		}
		if err := round(2); err != nil { // buffers and stacks have grown
			return nil, fmt.Errorf("first events: %w", err)
		}
		full, err := memoryNow()
		if err != nil {
			return nil, err
		}
		used, err := costOf(func() error { return round(j.Writes) })
		if err != nil {
			return nil, fmt.Errorf("events: %w", err)
		}
		if got, want := d.events()-before, int64(j.Writes+2)*int64(j.Watches); got != want {
			return nil, fmt.Errorf("%d events of %d", got, want)
		}
		figures := used.per(int64(j.Writes)*int64(j.Watches), "event")
		figures = append(figures, full.per(empty, j.Watches, "watch")...)
		return append(figures, opened.per(int64(j.Watches), "watch opened")...), nil
	}
}

// await looks every 50 ms until ok holds, for two minutes at most.
func await(ok func() (bool, error)) error {
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if done, err := ok(); done || err != nil {
			return err
		}
		if time.Now().After(end) {
			return fmt.Errorf("not within two minutes")
		}
	}
}
