package observe

import (
	"time"

	"github.com/prometheus/common/model"

	"github.com/stormglass/stormglass/loadgen/internal/scrape"
)

// Past is a Recorder for finished runs. It has no targets. Set Config.Samples to the samples of the runs.
type Past struct {
	// Every returns the longest time between two samples of the runs.
	Every func() time.Duration
	// Kinds are the types of the metric families, by name.
	Kinds map[string]model.MetricType
}

// Live implements Recorder.
func (Past) Live() scrape.Storage { return nil }

// Targets implements Recorder.
func (Past) Targets() []scrape.TargetState { return nil }

// Types implements Recorder.
func (p Past) Types() map[string]model.MetricType { return p.Kinds }

// Interval implements Recorder.
func (p Past) Interval() time.Duration { return p.Every() }
