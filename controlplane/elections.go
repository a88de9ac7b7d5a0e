package controlplane

import (
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/leadership"
)

// followLogs begins to read the logs of all components that are elected.
func (p *Plane) followLogs() []*leadership.Log {
	var logs []*leadership.Log
	for _, kind := range control.Kinds() {
		if kind == control.KindAPIServer {
			continue
		}
		for i := range p.opts.Config.Count(kind) {
			name := control.ComponentName(kind, i)
			logs = append(logs, leadership.Follow(name, kind, p.layout.Log(name)))
		}
	}
	return logs
}

// electionInterval is how often the logs are looked at: that late an event is
// told, not dated.
const electionInterval = 50 * time.Millisecond

// tellElections tells of elections until the plane ends.
func (p *Plane) tellElections(logs []*leadership.Log) {
	tick := time.NewTicker(electionInterval)
	defer tick.Stop()
	for {
		for _, log := range logs {
			for _, event := range log.Next() {
				p.events.Tell(event)
			}
		}
		select {
		case <-p.lifetime.Done():
			return
		case <-tick.C:
		}
	}
}
