package run

import (
	"github.com/stormglass/stormglass/loadgen/internal/load/request"
	"github.com/stormglass/stormglass/loadgen/internal/load/watch"
	"github.com/stormglass/stormglass/loadgen/result"
)

// fill puts what the loads saw into the phases they saw it in.
func (ls *loads) fill(phases []result.Phase) {
	at := map[string]*result.Phase{}
	for i := range phases {
		at[phases[i].Name] = &phases[i]
	}
	for _, p := range ls.all {
		switch l := p.load.(type) {
		case *request.Requests:
			for name, all := range l.Results() {
				if phase := at[name]; phase != nil {
					p.put(phase, all)
				}
			}
		case *watch.Watches:
			for name, seen := range l.Results() {
				if phase := at[name]; phase != nil {
					phase.Watches = append(phase.Watches, seen)
				}
			}
		}
	}
}

// put adds what requests or changes saw to a phase.
func (p *placed) put(phase *result.Phase, all []result.Requests) {
	for _, seen := range all {
		if p.changes != nil {
			phase.Changes = append(phase.Changes, result.Changes{Requests: seen, Acknowledged: p.changes.Acknowledged()[phase.Name]})
		} else {
			phase.Requests = append(phase.Requests, seen)
		}
	}
}
