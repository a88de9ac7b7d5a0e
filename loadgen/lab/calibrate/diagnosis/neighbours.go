package main

import (
	"context"
	"strconv"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/timeline"
	"github.com/stormglass/stormglass/loadgen/lab/calibrate/runner"
)

// neighbours follows the timeline of a run until ctx ends. It runs busy processes during the phases in which the plan
// plants them.
func (p plan) neighbours(ctx context.Context, dir string) {
	loops := map[string]int{}
	for _, f := range p.faults {
		for _, c := range f.cases {
			if c.Neighbours {
				loops[f.phase], _ = strconv.Atoi(c.Sizes[f.size])
			}
		}
	}
	if len(loops) == 0 {
		return
	}
	stop := func() {}
	defer func() { stop() }()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for read := 0; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		events, err := timeline.Read(dir)
		if err != nil {
			continue // the next read may succeed
		}
		for ; read < len(events); read++ {
			e := events[read]
			switch {
			case e.Kind == "phase-start" && loops[e.Name] > 0:
				stop = runner.Busy(ctx, loops[e.Name])
			case e.Kind == "phase-end" && loops[e.Name] > 0:
				stop()
				stop = func() {}
			}
		}
	}
}
