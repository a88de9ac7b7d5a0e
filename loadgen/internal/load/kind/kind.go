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

// makers holds the constructor of each kind of load.
func makers() map[string]func(*making, scenario.PlacedLoad) (load.Load, error) {
	return map[string]func(*making, scenario.PlacedLoad) (load.Load, error){
		"requests": newRequests,
		"watches":  newWatches,
		"changes":  newChanges,
		"history":  newHistory,
		"custom":   newCustom,
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

func newRequests(m *making, at scenario.PlacedLoad) (load.Load, error) {
	pacer, err := m.pacer(at)
	if err != nil {
		return nil, err
	}
	op, err := object.NewOperation(m.target, *at.Load)
	if err != nil {
		return nil, err
	}
	return request.New(m.target, *at.Load, op, pacer)
}

func newWatches(m *making, at scenario.PlacedLoad) (load.Load, error) {
	pacer, err := m.pacer(at)
	if err != nil {
		return nil, err
	}
	objects, err := object.NewSet(m.target, *at.Load)
	if err != nil {
		return nil, err
	}
	return watch.New(m.target, *at.Load, pacer, objects)
}

func newCustom(m *making, at scenario.PlacedLoad) (load.Load, error) {
	pacer, err := m.pacer(at)
	if err != nil {
		return nil, err
	}
	return request.NewCalls(m.target, *at.Load, m.target.Callers[at.Name], pacer)
}

func newHistory(m *making, at scenario.PlacedLoad) (load.Load, error) {
	return history.New(m.target, history.Config{
		Name: at.Name, Clients: at.Clients, Registers: at.Objects, Rate: float64(at.Rate), Watchers: at.Watchers,
		Length: m.scenario.FixedLength(at), Dir: m.dir,
	})
}

func (m *making) pacer(at scenario.PlacedLoad) (arrival.Pacer, error) {
	p, err := arrival.NewShaped(at.Arrival, float64(at.Rate), at.Shape.Pace(), m.target.Seed)
	if err != nil {
		return nil, fmt.Errorf("load %s: %w", at.Name, err)
	}
	return p, nil
}
