package history

import (
	"cmp"
	"fmt"
	"time"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Limits. A history is kept in memory: the operations take about 10 MB, and with the maximum number of watch events 60 MB. A
// history that exceeds a limit does not pass.
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
	// Clients is the number of clients. Each makes one operation at a time [5].
	Clients int
	// Registers is the number of ConfigMaps that the clients use [5].
	Registers int
	// Rate is the number of arrivals per second of all clients together [20]. Most arrivals of writes are a read and a write.
	Rate float64
	// Watchers is the number of watchers of all registers, each on its own connection [3]. Negative means none.
	Watchers int
	// Length is the length of the run, to reject a run that would exceed MaxOperations. Zero means unknown.
	Length time.Duration
	// Timeout is the time limit of one operation [5s], after which its outcome is unknown.
	Timeout time.Duration
	// Quiet is the wait before the final reads [2s], in which late writes may arrive.
	Quiet time.Duration
	// Drain is how long the watchers may take to reach the final state [30s]. Events that have not arrived by then count as
	// missed, so it must be longer than a watch cache takes to reconnect to etcd.
	Drain time.Duration
	// JudgeWithin is the time limit of the searches for a linear order of all registers together [60s].
	JudgeWithin time.Duration
	// Dir is the run directory, to which the evidence of violations is written. Empty means that no evidence is written.
	Dir string
}

// withDefaults sets the defaults of zero values and rejects invalid values.
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

// mostPerArrival is the maximum number of operations of an arrival: a read, and a write over the version that was read.
const mostPerArrival = 2
