package recovery

import (
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
)

// storm counts the relists and breaks of a fault.
func storm(slots []samples.Slot, f fault, reach time.Time) result.RelistStorm {
	s := result.RelistStorm{WithinSeconds: stormWithin.Seconds()}
	type relists struct {
		from time.Time
		n    int64
	}
	var lately []relists // of the last second
	var inSecond int64
	for _, slot := range slots {
		if !f.within(reach, slot.Until()) || f.end != nil && slot.From().After(f.end.Add(stormWithin)) {
			continue
		}
		var n int64
		for load, seen := range slot.Streams {
			s.Breaks += seen.Breaks
			if seen.Relists == 0 {
				continue
			}
			if s.ByLoad == nil {
				s.ByLoad = map[string]int64{}
			}
			s.ByLoad[load] += seen.Relists
			n += seen.Relists
		}
		if n == 0 {
			continue
		}
		s.Relists += n
		s.Last = seconds(slot.Until().Sub(f.begin))
		lately, inSecond = append(lately, relists{slot.From(), n}), inSecond+n
		for slot.From().Sub(lately[0].from) >= time.Second {
			inSecond -= lately[0].n
			lately = lately[1:]
		}
		s.PeakPerSecond = max(s.PeakPerSecond, inSecond)
	}
	return s
}
