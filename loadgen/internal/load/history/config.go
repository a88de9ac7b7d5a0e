package history

import (
	"cmp"
	"fmt"
	"time"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Bounds. A history is kept in memory: about 10 MB of operations, and 60 MB with the most watch events. A
// history that exceeds a bound is not judged.
const (
	MaxOperations = scenario.MaxHistory
	MaxEvents     = 1_000_000
	mostClients   = 100
	mostWatchers  = 100
	mostRegisters = 1000
)

// Config configures a history. Zero values mean the defaults in brackets.
type Config struct {
	// Name is the load's name. The names of its ConfigMaps begin with it.
	Name string
	// Clients write and read, one operation at a time each [5].
	Clients int
	// Registers are the ConfigMaps they work on [5].
	Registers int
	// Rate of arrivals per second, over all clients [20]. Most writes are a read and a write.
	Rate float64
	// Watchers of all registers, each on its own connection [3]. Below 0: none.
	Watchers int
	// Length of the run, to reject a run that would exceed MaxOperations; zero if unknown.
	Length time.Duration
	// Timeout of one operation [5s], after which its outcome is unknown.
	Timeout time.Duration
	// Quiet is the wait before the final reads [2s], for writes on their way.
	Quiet time.Duration
	// Drain is how long the watchers may take to reach the final state [30s]. It must be longer than a watch
	// cache takes to find its etcd again: events that have not arrived by then were missed.
	Drain time.Duration
	// JudgeWithin bounds the search for a linear order of all registers together [60s].
	JudgeWithin time.Duration
	// Dir takes the evidence of violations: the run directory. Empty: no evidence is written.
	Dir string
}

// withDefaults fills in zero values and rejects invalid ones.
func (c Config) withDefaults() (Config, error) {
	for _, d := range []struct {
		field *time.Duration
		value time.Duration
	}{{&c.Timeout, 5 * time.Second}, {&c.Quiet, 2 * time.Second}, {&c.Drain, 30 * time.Second}, {&c.JudgeWithin, time.Minute}} {
		if *d.field < 0 {
			return c, fmt.Errorf("load %s: a negative duration", c.Name)
		}
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	c.Clients, c.Registers, c.Rate = cmp.Or(c.Clients, 5), cmp.Or(c.Registers, 5), cmp.Or(c.Rate, 20)
	c.Watchers = max(cmp.Or(c.Watchers, 3), 0)
	switch {
	case c.Name == "":
		return c, fmt.Errorf("a history needs a name")
	case c.Clients < 0 || c.Clients > mostClients:
		return c, fmt.Errorf("load %s: clients: %d (1 to %d)", c.Name, c.Clients, mostClients)
	case c.Registers < 0 || c.Registers > mostRegisters:
		return c, fmt.Errorf("load %s: objects: %d (1 to %d)", c.Name, c.Registers, mostRegisters)
	case c.Watchers > mostWatchers:
		return c, fmt.Errorf("load %s: watchers: %d (at most %d)", c.Name, c.Watchers, mostWatchers)
	case !(c.Rate > 0 && c.Rate <= 1000):
		return c, fmt.Errorf("load %s: rate: %g/s (over 0, at most 1000/s)", c.Name, c.Rate)
	}
	if all := mostPerArrival * c.Rate * c.Length.Seconds(); all > MaxOperations {
		return c, fmt.Errorf("load %s: rate: %g/s for %v may be %.0f operations, and a history holds %d (lower the rate to %.1f/s)",
			c.Name, c.Rate, c.Length, all, MaxOperations, MaxOperations/mostPerArrival/c.Length.Seconds())
	}
	return c, nil
}

// mostPerArrival: a read, and the write of what it read.
const mostPerArrival = 2
