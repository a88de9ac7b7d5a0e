package scenario

import (
	"fmt"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
)

func (v *validator) rate(path string, l *Load) {
	switch {
	case l.Shape.Kind == "replay" && l.Rate != 0:
		v.fail(path+".rate", "leave it out", "a replay has the rate of its file")
	case l.Shape.Kind == "replay", l.Shape.Kind == "burst", l.Shape.Kind == "ramp", l.Shape.Kind == "step":
	case l.Rate == 0:
		v.fail(path+".rate", "write rate: 50/s", "load %q has no rate", l.Name)
	}
	for field, rate := range map[string]Rate{"rate": l.Rate, "shape.to": l.Shape.EndRate()} {
		if rate > MaxRate {
			v.fail(path+"."+field, fmt.Sprintf("at most %d/s", MaxRate), "%s is more than one machine can send", rate)
		}
	}
	v.oneOf(path+".arrival", l.Arrival, "constant", "poisson")
	v.shape(path+".shape", l)
}

func (v *validator) shape(path string, l *Load) {
	s := &l.Shape
	if s.Kind != "" && !v.oneOf(path+".kind", s.Kind, "ramp", "step", "burst", "sine", "replay") {
		return
	}
	v.onlyFor(path, s.Kind, []field{
		{"to", s.To != nil, "ramp step"}, {"over", s.Over != 0, "ramp"}, {"steps", s.Steps != 0, "step"},
		{"every", s.Every != 0, "step burst sine"}, {"burst", s.Burst != 0, "burst"},
		{"amplitude", s.Amplitude != 0, "sine"}, {"file", s.File != "", "replay"}, {"speed", s.Speed != 0, "replay"},
	})
	switch {
	case s.Kind == "replay" && s.File == "":
		v.fail(path+".file", "write file: arrivals.txt", "a replay without a file")
	case (s.Kind == "ramp" || s.Kind == "step") && s.To == nil:
		v.fail(path+".to", "write to: 500/s, or to: 0/s for one that ends", "a %s without the rate that it ends with", s.Kind)
	case (s.Kind == "ramp" || s.Kind == "step") && l.Rate == 0 && *s.To == 0:
		v.fail(path+".to", "write to: 500/s", "from 0/s to 0/s there is no load")
	case s.Burst > MaxRate:
		v.between(path+".burst", float64(s.Burst), 1, MaxRate)
	case s.Kind == "burst" && s.Every > 0 && s.Every.D() < minEvery:
		v.fail(path+".every", fmt.Sprintf("at least %s", Duration(minEvery)), "%s is too short for a burst", s.Every)
	case s.Kind == "burst" && s.Every > 0 && float64(s.Burst)/s.Every.D().Seconds() > MaxRate:
		v.fail(path+".burst", fmt.Sprintf("at most %d every %s", int64(MaxRate*s.Every.D().Seconds()), s.Every), "%d every %s is more than one machine can send", s.Burst, s.Every)
	case s.Kind == "sine" && !v.s.recorded && s.Amplitude <= 1 && float64(l.Rate)*(1+s.Amplitude) > MaxRate:
		v.fail(strings.TrimSuffix(path, ".shape")+".rate", fmt.Sprintf("at most %d/s", int(MaxRate/(1+s.Amplitude))), "%s, the top of the sine, is more than one machine can send", l.Rate*Rate(1+s.Amplitude))
	case s.Steps > maxSteps:
		v.between(path+".steps", float64(s.Steps), 1, maxSteps)
	default:
		if _, err := arrival.NewShaped("constant", min(float64(l.Rate), MaxRate), s.Pace(), 0); err != nil && s.EndRate() <= MaxRate {
			msg, hint, _ := strings.Cut(err.Error(), "; ")
			v.fail(path, hint, "%s", msg)
		}
	}
}

const (
	maxSteps = 10_000
	// minEvery is the least time between bursts that are told apart.
	minEvery = 10 * time.Millisecond
)

// EndRate is the rate that a ramp or step ends with, 0 for other shapes.
func (s Shape) EndRate() Rate {
	if s.To == nil {
		return 0
	}
	return *s.To
}

// Pace is the shape as package arrival knows it.
func (s Shape) Pace() arrival.Shape {
	return arrival.Shape{
		Kind: s.Kind, To: float64(s.EndRate()), Over: s.Over.D(), Steps: s.Steps, Every: s.Every.D(),
		Burst: s.Burst, Amplitude: s.Amplitude, Times: s.Times, Speed: s.Speed,
	}
}
