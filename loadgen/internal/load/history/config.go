package history

import (
	"cmp"
	"fmt"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/plan"
)

// Limits of a history. A load keeps its history in memory: up to about 10 MB of operations and 60 MB of watch events. A
// history that would exceed MaxOperations or MaxEvents does not pass. New rejects a Config that exceeds one of the
// other limits.
const (
	MaxOperations = plan.MaxHistory
	MaxEvents     = 1_000_000
	maxClients    = 100
	maxWatchers   = 100
	maxRegisters  = 1000
)

// Config configures a history. A field that is zero gets its default.
type Config struct {
	// Name is the load's name. It is the prefix of the names of the ConfigMaps.
	Name string
	// Clients is the number of clients (default 5). Each client performs one operation at a time.
	Clients int
	// Registers is the number of ConfigMaps that the clients use (default 5).
	Registers int
	// Rate is the number of arrivals per second of all clients together (default 20). An arrival that writes usually reads
	// the register first.
	Rate float64
	// Watchers is the number of watchers (default 3). Each watches all registers, on its own connection. A negative number
	// means no watchers.
	Watchers int
	// Length is the length of the run. A run that would exceed MaxOperations is rejected. Zero means unknown.
	Length time.Duration
	// Timeout is the time limit of an operation (default 5s). Afterwards, the outcome of the operation is unknown.
	Timeout time.Duration
	// Quiet is the wait before the final reads (default 2s). It gives the API server time to execute writes that are still
	// in flight.
	Quiet time.Duration
	// Drain is the time limit for the watchers to reach the final state (default 30s). Events that arrive later count as
	// missed. Drain must be longer than the time that a watch cache needs to reconnect to etcd.
	Drain time.Duration
	// JudgeWithin is the time limit for the searches for a linear order, for all registers together (default 60s).
	JudgeWithin time.Duration
	// Dir is the run directory, in which the load writes evidence of violations. Empty means that it writes none.
	Dir string
}

// withDefaults returns the Config with defaults for zero values. It returns an error for invalid values.
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
		return c, fmt.Errorf("a load of kind history needs a name")
	case c.Clients < 0 || c.Clients > maxClients:
		return c, fmt.Errorf("load %s: clients: %d is out of range (1 to %d)", c.Name, c.Clients, maxClients)
	case c.Registers < 0 || c.Registers > maxRegisters:
		return c, fmt.Errorf("load %s: objects: %d is out of range (1 to %d)", c.Name, c.Registers, maxRegisters)
	case c.Watchers > maxWatchers:
		return c, fmt.Errorf("load %s: watchers: %d is too many (at most %d)", c.Name, c.Watchers, maxWatchers)
	case !(c.Rate > 0 && c.Rate <= 1000):
		return c, fmt.Errorf("load %s: rate: %g/s is out of range (over 0, at most 1000/s)", c.Name, c.Rate)
	}
	if all := maxPerArrival * c.Rate * c.Length.Seconds(); all > MaxOperations {
		return c, fmt.Errorf("load %s: rate: %g/s for %v may be %.0f operations, but a history can record only %d (lower the rate to %.1f/s)",
			c.Name, c.Rate, c.Length, all, MaxOperations, MaxOperations/maxPerArrival/c.Length.Seconds())
	}
	return c, nil
}

// maxPerArrival is the maximum number of operations of one arrival: a read, and a write that replaces the state read.
const maxPerArrival = 2
