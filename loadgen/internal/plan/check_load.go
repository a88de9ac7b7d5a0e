package plan

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const defaultQuota = 2 << 30

// loads checks whether the loads can do their work in the available time, and whether their objects fit into etcd's quota.
func (c *forecast) loads() {
	for _, l := range c.Loads {
		c.arrivals(l)
		switch l.Kind {
		case "history":
			c.history(l)
		case "watches":
			c.slowWatches(l)
		}
	}
	c.volume()
	c.controllers()
}

// controllers reports an error if a phase waits for podsReady or nodesNotReady while a necessary controller is off.
func (c *forecast) controllers() {
	const flag = "controlPlane.controllerManager.flags.controllers"
	list, set := c.ControlPlane.ControllerManager.Flags["controllers"]
	if !set {
		return
	}
	words := strings.Split(list, ",")
	for i := range c.Phases {
		until := c.Phases[i].Until.Text
		for _, full := range map[string][]string{"podsReady": {"deployment-controller", "replicaset-controller"}, "nodesNotReady": {"node-lifecycle-controller"}}[until] {
			name := strings.ReplaceAll(strings.TrimSuffix(full, "-controller"), "-", "") // the former name of the controller
			on := slices.Contains(words, name) || slices.Contains(words, full)
			off := slices.Contains(words, "-"+name) || slices.Contains(words, "-"+full) || !slices.Contains(words, "*")
			if !on && off {
				c.report(flag, "add it to the list, or add *", "%s is never met while the %s is turned off", until, full)
				return
			}
		}
	}
}

// pacer returns the pacer of a load, or nil if the arrivals are not known before the run.
func (p *Plan) pacer(l Load) arrival.Pacer {
	if l.Shape.Kind == "replay" || l.Kind == "replay" || l.Kind == "history" {
		return nil
	}
	pacer, err := arrival.NewShaped(l.Arrival, float64(l.Rate), l.Shape.Pace(), p.Seed)
	if err != nil {
		return nil // already reported
	}
	return pacer
}

func (c *forecast) arrivals(l Load) {
	p, length := c.pacer(l), l.Longest
	if p == nil || length == 0 {
		return
	}
	first := p.At(0)
	phase := c.Phase(l.Phase)
	switch {
	case first < length && l.OpensWatches() && l.Shape.Kind != "" && phase != nil && phase.Until.Is("watchesOpen") && p.At(int64(l.Count-1)) >= length:
		c.report(l.Path+".shape", "use a higher rate or a longer phase", "watchesOpen is never met: only %d of %d watches are open when the phase ends after %s", p.Due(length), l.Count, scenario.Duration(length))
	case first < length || l.Phase != "" && l.Shape.Kind == "burst" && l.Shape.Every.D() >= length: // bursts are reported separately
	case l.Shape.Kind != "":
		c.report(l.Path+".shape", "use a higher rate or a shorter shape", "no arrival is due: the first arrival %s, but the load ends after %s", after(first), scenario.Duration(length))
	default:
		// Arrival times scale with 1/rate, so rate times the first arrival time is constant.
		least := float64(l.Rate) * first.Seconds() / length.Seconds()
		c.report(l.Path+".rate", "write "+atLeast(least), "no arrival is due: the first arrival %s, but the load ends after %s", after(first), scenario.Duration(length))
	}
}

func after(at time.Duration) string {
	if at == arrival.Never {
		return "never comes"
	}
	return "comes after " + scenario.Duration(at.Round(time.Second)).String()
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

func (c *forecast) volume() {
	quota := int64(defaultQuota)
	if n, err := strconv.ParseInt(c.ControlPlane.Etcd.Flags["quota-backend-bytes"], 0, 64); err == nil && n != 0 {
		quota = n
	}
	if quota < 0 { // unlimited
		return
	}
	sum, most := c.Kept, 0.0
	var largest Load
	for _, l := range c.Loads {
		if l.Kept > most {
			most, largest = l.Kept, l
		}
	}
	if sum <= float64(quota) {
		return
	}
	room := float64(quota)*3/4 - (sum - most) // etcd stores more than payloads
	each := most / float64(largest.Objects)
	hint := fmt.Sprintf(`use at most %d objects or smaller ones, or set controlPlane.etcd.flags: {quota-backend-bytes: "%d"}`, int64(max(room/each, 1)), int64(math.Ceil(sum*4/3/(1<<30)))<<30)
	c.report(largest.Path+".objects", hint, "the objects of all loads take %s, but etcd's quota is %s", scenario.Bytes(sum).Roughly(), scenario.Bytes(quota).Roughly())
}

// history reports an error for a history load that exceeds MaxHistory operations before its phases end. It ignores
// loads whose phases end by a condition.
func (c *forecast) history(l Load) {
	length := l.Fixed
	if most := MaxHistory / 2 / length.Seconds(); length > 0 && float64(l.Rate) > most {
		hint := "a shorter phase"
		if most >= 0.1 {
			hint = fmt.Sprintf("use at most %s/s, or a shorter phase", plain(math.Floor(most*10)/10))
		}
		c.report(l.Path+".rate", hint, "at %s for %s there may be %.0f operations, but a history load can record only %d", l.Rate, scenario.Duration(length), 2*float64(l.Rate)*length.Seconds(), MaxHistory)
	}
}

// slowWatches reports an error if the scenario asks for slow watches, but their fraction of all watches is less than
// one watch.
func (c *forecast) slowWatches(l Load) {
	if l.Slow.Fraction > 0 && int(float64(l.Count)*l.Slow.Fraction) == 0 {
		c.report(l.Path+".slow.fraction", fmt.Sprintf("use at least %s, which is one watch", plain(math.Ceil(1e5/float64(l.Count))/1e5)), "%s of %d watches is less than one watch", plain(l.Slow.Fraction), l.Count)
	}
}
