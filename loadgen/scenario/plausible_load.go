package scenario

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/digits"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
)

const defaultQuota = 2 << 30

// loads checks whether the loads can do their work in the available time, and their objects fit into etcd's quota.
func (c *forecast) loads() {
	for _, l := range c.v.s.Loads() {
		c.arrivals(l)
		if check := l.kind().plausible; check != nil {
			check(c, l)
		}
	}
	c.volume()
	c.controllers()
}

// controllers reports an error if a phase waits for podsReady or nodesNotReady while a necessary controller is off.
func (c *forecast) controllers() {
	const flag = "controlPlane.controllerManager.flags.controllers"
	list, set := c.v.s.ControlPlane.ControllerManager.Flags["controllers"]
	if !set {
		return
	}
	words := strings.Split(list, ",")
	for i := range c.v.s.Phases {
		until := c.v.s.Phases[i].Until.Text
		for _, full := range map[string][]string{"podsReady": {"deployment-controller", "replicaset-controller"}, "nodesNotReady": {"node-lifecycle-controller"}}[until] {
			name := strings.ReplaceAll(strings.TrimSuffix(full, "-controller"), "-", "") // the former name of the controller
			on := slices.Contains(words, name) || slices.Contains(words, full)
			off := slices.Contains(words, "-"+name) || slices.Contains(words, "-"+full) || !slices.Contains(words, "*")
			if !on && off {
				c.v.fail(flag, "add it to the list, or add *", "%s is never met while the %s is turned off", until, full)
				return
			}
		}
	}
}

// longest returns the maximum time for which a load runs: the length of its phase, or of all phases.
func (s *Scenario) longest(l PlacedLoad) time.Duration {
	if p := s.Phase(l.Phase); p != nil {
		return LongestOf(*p)
	}
	return s.Longest()
}

// FixedLength returns the time for which a load runs. It returns 0 if a condition ends one of the load's phases.
func (s *Scenario) FixedLength(l PlacedLoad) time.Duration {
	for i := range s.Phases {
		if p := &s.Phases[i]; !p.Until.IsZero() && (l.Phase == "" || l.Phase == p.Name) {
			return 0
		}
	}
	return s.longest(l)
}

// pacer returns the pacer of a load, or nil if the arrivals are not known before the run.
func (s *Scenario) pacer(l PlacedLoad) arrival.Pacer {
	if l.Shape.Kind == "replay" || l.kind().unpaced {
		return nil
	}
	p, err := arrival.NewShaped(l.Arrival, float64(l.Rate), l.Shape.Pace(), s.Seed)
	if err != nil {
		return nil // already reported
	}
	return p
}

func (c *forecast) arrivals(l PlacedLoad) {
	p, length := c.v.s.pacer(l), c.v.s.longest(l)
	if p == nil || length == 0 {
		return
	}
	first := p.At(0)
	phase := c.v.s.Phase(l.Phase)
	switch {
	case first < length && l.OpensWatches() && l.Shape.Kind != "" && phase != nil && phase.Until.Is("watchesOpen") && p.At(int64(l.Count-1)) >= length:
		c.v.fail(l.Path+".shape", "use a higher rate or a longer phase", "watchesOpen is never met: only %d of %d watches are open when the phase ends after %s", p.Due(length), l.Count, Duration(length))
	case first < length || l.Phase != "" && l.Shape.Kind == "burst" && l.Shape.Every.D() >= length: // bursts are reported separately
	case l.Shape.Kind != "":
		c.v.fail(l.Path+".shape", "use a higher rate or a shorter shape", "no arrival is due: the first arrival %s, but the load ends after %s", after(first), Duration(length))
	default:
		// Arrival times scale with 1/rate, so rate times the first arrival time is constant.
		least := float64(l.Rate) * first.Seconds() / length.Seconds()
		c.v.fail(l.Path+".rate", "write "+atLeast(least), "no arrival is due: the first arrival %s, but the load ends after %s", after(first), Duration(length))
	}
}

func after(at time.Duration) string {
	if at == arrival.Never {
		return "never comes"
	}
	return "comes after " + Duration(at.Round(time.Second)).String()
}

// atLeast returns a rate slightly above the given one, written as a whole number per second, minute or hour.
func atLeast(rate float64) string {
	for _, unit := range []struct {
		name    string
		seconds float64
	}{{"s", 1}, {"m", 60}, {"h", 3600}} {
		if n := math.Floor(rate*unit.seconds) + 1; n > 1 || unit.name == "h" {
			return strconv.FormatFloat(n, 'f', -1, 64) + "/" + unit.name
		}
	}
	return ""
}

// sparse returns a warning for each load that does less than the scenario says: requests with a single arrival, watches
// that are not all opened, and ramps and steps that do not complete.
func (s *Scenario) sparse() []string {
	var all []string
	warn := func(path, hint, format string, args ...any) {
		all = append(all, s.Errorf(path, hint, format, args...).Error())
	}
	if n := s.Nodes; n.Count > 0 && s.gracePeriod() > 0 && n.LeaseRenew.D() >= s.gracePeriod() {
		warn("nodes.leaseRenew", fmt.Sprintf("use less than %s, or a longer node-monitor-grace-period", Duration(s.gracePeriod())), "nodes become NotReady between their heartbeats, because the controller manager waits only %s for a heartbeat", Duration(s.gracePeriod()))
	}
	for _, l := range s.Loads() {
		p, length := s.pacer(l), s.longest(l)
		if p == nil || length == 0 {
			continue
		}
		until := ""
		if phase := s.Phase(l.Phase); phase != nil {
			until = phase.Until.String()
		}
		shape := l.Shape
		switch {
		case !l.OpensWatches() && p.At(1) >= length:
			warn(l.Path+".rate", "use a higher rate, for example "+atLeast(1/length.Seconds()), "only one arrival is due: the second arrival %s, but the load ends after %s", after(p.At(1)), Duration(length))
		case l.OpensWatches() && !l.Hold && until == "" && p.At(int64(l.Count-1)) >= length:
			warn(l.Path+".rate", fmt.Sprintf("use %s or a longer phase", atLeast(float64(l.Count)/length.Seconds())), "only %d of %d watches are open when the phase ends after %s", p.Due(length), l.Count, Duration(length))
		case shape.Kind == "ramp" && until == "" && shape.Over.D() > length:
			warn(l.Path+".shape.over", fmt.Sprintf("at most %s", Duration(length)), "the ramp does not reach its final rate, because the load ends after %s", Duration(length))
		case shape.Kind == "step" && until == "" && time.Duration(shape.Steps)*shape.Every.D() >= length:
			warn(l.Path+".shape", fmt.Sprintf("use fewer than %d steps, or steps shorter than %s", shape.Steps, shape.Every), "the last step is never reached, because the load ends after %s", Duration(length))
		}
	}
	return all
}

func (c *forecast) volume() {
	quota := int64(defaultQuota)
	if n, err := strconv.ParseInt(c.v.s.ControlPlane.Etcd.Flags["quota-backend-bytes"], 0, 64); err == nil && n != 0 {
		quota = n
	}
	if quota < 0 { // unlimited
		return
	}
	var sum, most float64
	var largest PlacedLoad
	for _, l := range c.v.s.Loads() {
		size := l.kept()
		if sum += size; size > most {
			most, largest = size, l
		}
	}
	if sum <= float64(quota) {
		return
	}
	room := float64(quota)*3/4 - (sum - most) // etcd stores more than payloads
	each := most / float64(largest.Objects)
	hint := fmt.Sprintf(`use at most %d objects or smaller ones, or set controlPlane.etcd.flags: {quota-backend-bytes: "%d"}`, int64(max(room/each, 1)), int64(math.Ceil(sum*4/3/(1<<30)))<<30)
	c.v.fail(largest.Path+".objects", hint, "the objects of all loads take %s, but etcd's quota is %s", inUnits(sum), inUnits(float64(quota)))
}

// inUnits formats a size in the largest unit that fits, with three digits.
func inUnits(bytes float64) string {
	for _, unit := range []string{"GiB", "MiB", "KiB"} {
		if n := bytes / sizeUnits[unit]; n >= 1 {
			return digits.Format(n, 3) + unit
		}
	}
	return plain(bytes) + " bytes"
}

// kept returns the total payload, in bytes, of the objects that a load creates before it starts.
func (l *Load) kept() float64 {
	if !l.kind().manifests {
		return 0
	}
	made := map[string]bool{}
	for _, o := range l.Operations() {
		if l.OwnObjects(o) {
			made[o.Resource] = true
		}
	}
	return float64(len(made)) * float64(l.Objects) * l.size()
}

// size returns the mean payload of the load's objects, in bytes.
func (l *Load) size() float64 {
	var size, weights float64
	for _, s := range l.Sizes {
		size, weights = size+float64(s.Size)*s.Weight, weights+s.Weight
	}
	if len(l.Sizes) == 0 {
		return float64(l.Size)
	}
	return size / max(weights, 1e-9)
}
