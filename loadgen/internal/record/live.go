package record

import (
	"maps"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/storage"
)

// Storage is an archive while it is written.
type Storage interface {
	storage.Queryable
	storage.AppendableV2
}

// Live is the archive as it is now, until Close.
func (r *Recorder) Live() Storage { return r.db }

// TargetState is the outcome of the last scrape of a target.
type TargetState struct {
	Job, Instance string
	// URL of its /metrics; empty for the generator's own, which has none.
	URL string
	// Scraped is when, zero if it was not yet; Took how long.
	Scraped time.Time
	Took    time.Duration
	// Failed is why there is nothing from it, empty if there is.
	Failed string
}

// Targets is the state of all targets, in the order they were given.
func (r *Recorder) Targets() []TargetState {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]TargetState, 0, len(r.targets))
	for _, t := range r.targets {
		all = append(all, t.state)
	}
	return all
}

// Interval is the time between the periodic scrapes of a target.
func (r *Recorder) Interval() time.Duration { return r.o.Interval }

// Types are those of all families that were recorded, by name.
func (r *Recorder) Types() map[string]model.MetricType {
	all := map[string]model.MetricType{}
	for _, t := range r.targets {
		t.typesMu.Lock()
		maps.Copy(all, t.types)
		t.typesMu.Unlock()
	}
	return all
}

// learn remembers the type of a family. It has a lock of its own: a scrape
// holds the target's for as long as the target takes to answer.
func (t *target) learn(family []byte, kind model.MetricType) {
	t.typesMu.Lock()
	defer t.typesMu.Unlock()
	if t.types[string(family)] != kind {
		t.types[string(family)] = kind
	}
}
