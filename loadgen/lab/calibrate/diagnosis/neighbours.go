package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/stormglass/stormglass/loadgen/lab/calibrate/runner"
	"github.com/stormglass/stormglass/loadgen/result"
)

// neighbours follows the timeline of a run until ctx ends. It runs busy processes during the phases for which the plan
// has them.
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
		for _, e := range eventsFrom(filepath.Join(dir, "timeline.jsonl"), &read) {
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

// eventsFrom returns the events of a timeline after the first *read events, and adds their number to *read.
func eventsFrom(file string, read *int) (events []result.Event) {
	f, err := os.Open(file)
	if err != nil {
		return nil // the run has not begun
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for n := 0; lines.Scan(); n++ {
		var e result.Event
		if n < *read {
			continue
		}
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			return events // the line has not been written completely yet
		}
		*read++
		events = append(events, e)
	}
	_ = lines.Err() // the next call reads the rest
	return events
}
