package workload

import (
	"time"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

func (t *tracker) wanted(d *deployment) (n int64) {
	switch {
	case d.hasJobs():
		d.eachOpen(func(j *job) { n += j.open() })
		return n
	case d.workload() == scenario.DaemonSet:
		if d.generation == deleted {
			return 0
		}
		return t.up
	}
	return max(d.replicas, d.needed)
}

// missing returns how many of the wanted pods the workload lacks. Pods on failed nodes do not count.
func (t *tracker) missing(d *deployment) (n int64) {
	if d.hasJobs() {
		d.eachOpen(func(j *job) { n += j.missing() })
		return n
	}
	return max(0, t.wanted(d)-d.good)
}

// whole reports whether a workload has all its pods, and no others. Each pod must be Ready, of the current revision, and
// not on a failed node. A Deployment or StatefulSet needs its replicas, and enough of them for an autoscaler; a DaemonSet
// needs one pod per node. A Job needs a pod for each missing completion, and a CronJob the pods of each of its Jobs.
func (t *tracker) whole(d *deployment) bool {
	switch {
	case d.generation == deleted:
		return d.good == 0 && d.other == 0
	case d.hasJobs():
		return t.missing(d) == 0
	case d.workload() == scenario.DaemonSet:
		return d.good == t.up && d.other == 0
	}
	return d.good == d.replicas && d.other == 0 && d.replicas >= d.enough
}

// agrees reports whether the status of a workload confirms that all its pods are Ready. It does not check the status of
// a Job, because the tracker judges a Job by its pods. The status of a DaemonSet includes pods on failed nodes.
func (t *tracker) agrees(d *deployment) bool {
	s := d.status
	switch {
	case d.hasJobs():
		return true
	case s.observed < d.generation:
		return false
	case d.workload() == scenario.DaemonSet:
		return s.updated >= t.up && s.available >= t.up
	}
	return s.specReplicas == d.replicas && s.replicas == d.replicas && s.updated == d.replicas && s.available == d.replicas
}

func (t *tracker) liveNow() Live {
	l := t.live
	for _, d := range t.deployments {
		l.PodsWanted += t.wanted(d)
	}
	return l
}

// clock measures how long it takes until all pods of a workload are Ready again after nodes failed or returned. It
// starts only if some pods are missing at that time. The clock keeps the last measured duration.
type clock struct {
	since time.Time // when nodes last failed or returned; zero: never
	runs  bool
	took  time.Duration
}

func (c *clock) read(now time.Time) time.Duration {
	if c.runs {
		return now.Sub(c.since)
	}
	return c.took
}

func (t *tracker) startClocks(at time.Time) {
	for _, d := range t.deployments {
		switch c := &d.recovery; {
		case d.generation == deleted || c.runs:
		case !t.whole(d):
			*c, t.clocks = clock{since: at, runs: true}, true
		case c.since.IsZero():
			c.since = at
		}
	}
}

func (t *tracker) stopClocks(at time.Time) {
	if !t.clocks {
		return
	}
	t.clocks = false
	for _, d := range t.deployments {
		if c := &d.recovery; c.runs && (d.generation == deleted || t.whole(d)) {
			c.runs, c.took = false, at.Sub(c.since)
		}
		t.clocks = t.clocks || d.recovery.runs
	}
}

// state is the current state of one workload, for the metrics.
type state struct {
	name, kind     string
	missing, stuck int64
	recovery       *time.Duration // time to recover from a node failure; nil if no nodes have failed
	jobs           *jobCounts     // Jobs by state; nil unless the workload is a Job or CronJob
	runsMissed     *int64         // missed runs of a CronJob; nil for other kinds
}

func (t *tracker) states(now time.Time) []state {
	var all []state
	for name, d := range t.deployments {
		if d.generation == deleted {
			continue
		}
		s := state{name: name, kind: d.workload(), missing: t.missing(d), stuck: d.stuck}
		if c := d.recovery; !c.since.IsZero() {
			s.recovery = new(c.read(now))
		}
		if d.hasJobs() {
			s.jobs = new(d.counts())
		}
		if s.kind == scenario.CronJob {
			s.runsMissed = new(d.runs.missed(now))
		}
		all = append(all, s)
	}
	return all
}
