package recovery

import (
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/samples"
	"github.com/stormglass/stormglass/loadgen/result"
)

func relists(slots []samples.Slot, f span) result.RelistStorm {
	s := result.RelistStorm{WithinSeconds: stormWithin.Seconds()}
	type count struct {
		from time.Time
		n    int64
	}
	var lately []count // of the last second
	var inSecond int64
	for _, slot := range slots {
		if !f.has(slot.Until()) || f.End != nil && slot.From().After(f.End.Add(stormWithin)) {
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
		s.Last = seconds(slot.Until().Sub(f.Begin))
		lately, inSecond = append(lately, count{slot.From(), n}), inSecond+n
		for slot.From().Sub(lately[0].from) >= time.Second {
			inSecond -= lately[0].n
			lately = lately[1:]
		}
		s.PeakPerSecond = max(s.PeakPerSecond, inSecond)
	}
	return s
}
