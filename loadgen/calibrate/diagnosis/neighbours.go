package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/stormglass/stormglass/loadgen/calibrate/runner"
	"github.com/stormglass/stormglass/loadgen/result"
)

// neighbours keeps processors busy during the phases of a run that plant busy neighbours, until the context ends. It
// follows the run's timeline.
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

// eventsFrom reads the events of a timeline after the first read ones, and counts them.
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
			return events // its end is not written yet
		}
		*read++
		events = append(events, e)
	}
	return events
}
