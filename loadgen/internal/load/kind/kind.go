// Package kind makes the loads of a scenario, of every kind that there is.
package kind

import (
	"fmt"

	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/arrival"
	"github.com/stormglass/stormglass/loadgen/internal/load/history"
	"github.com/stormglass/stormglass/loadgen/internal/load/object"
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/internal/load/watch"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

type maker func(*making, scenario.PlacedLoad) (load.Load, error)

// makers holds the constructor of each kind of load.
func makers() map[string]maker {
	return map[string]maker{
		"requests": paced(newRequests),
		"watches":  paced(newWatches),
		"changes":  paced(newChanges),
		"history":  newHistory,
		"custom":   paced(newCustom),
	}
}

// paced makes the pacer of a load's arrivals for its constructor.
func paced(f func(*making, scenario.PlacedLoad, arrival.Pacer) (load.Load, error)) maker {
	return func(m *making, at scenario.PlacedLoad) (load.Load, error) {
		p, err := arrival.NewShaped(at.Arrival, float64(at.Rate), at.Shape.Pace(), m.target.Seed)
		if err != nil {
			return nil, fmt.Errorf("load %s: %w", at.Name, err)
		}
		return f(m, at, p)
	}
}

// making holds the inputs to making loads.
type making struct {
	scenario *scenario.Scenario
	target   load.Target
	dir      string
	made     map[string]load.Load // by name
}

// Make makes the loads of a scenario, in the order of Scenario.Loads. They send
// nothing yet. The evidence of histories in which something is wrong goes to dir.
// Errors name the place in the file.
func Make(s *scenario.Scenario, target load.Target, dir string) ([]load.Load, error) {
	m := &making{scenario: s, target: target, dir: dir, made: map[string]load.Load{}}
	places := s.Loads()
	all := make([]load.Load, len(places))
	// Loads that name others are made after those, wherever in the file they stand.
	for _, naming := range []bool{false, true} {
		for i, at := range places {
			if (at.Watches != "") != naming {
				continue
			}
			l, err := makers()[at.Kind](m, at)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", at.Path, err)
			}
			all[i], m.made[at.Name] = l, l
		}
	}
	return all, nil
}

func newRequests(m *making, at scenario.PlacedLoad, pacer arrival.Pacer) (load.Load, error) {
	op, err := object.NewOperation(m.target, *at.Load)
	if err != nil {
		return nil, err
	}
	return request.New(m.target, *at.Load, op, pacer)
}

func newWatches(m *making, at scenario.PlacedLoad, pacer arrival.Pacer) (load.Load, error) {
	objects, err := object.NewSet(m.target, *at.Load)
	if err != nil {
		return nil, err
	}
	return watch.New(m.target, *at.Load, pacer, objects)
}

func newCustom(m *making, at scenario.PlacedLoad, pacer arrival.Pacer) (load.Load, error) {
	return request.NewCalls(m.target, *at.Load, m.target.Callers[at.Name], pacer)
}

func newHistory(m *making, at scenario.PlacedLoad) (load.Load, error) {
	return history.New(m.target, history.Config{
		Name: at.Name, Clients: at.Clients, Registers: at.Objects, Rate: float64(at.Rate), Watchers: at.Watchers,
		Length: m.scenario.FixedLength(at), Dir: m.dir,
	})
}
