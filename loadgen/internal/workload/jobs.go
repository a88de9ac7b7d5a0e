package workload

import (
	"strconv"
	"strings"
	"time"

	"github.com/stormglass/stormglass/loadgen/scenario"
)

// job is the Job of a deploy action, or one Job of a CronJob.
type job struct {
	uid         string
	completions int64
	// seen and reported count the pods that have succeeded: seen by pod events, reported by the Job's status. Both are
	// needed, because pods of a lost node may disappear without an event, and the status lags behind.
	seen, reported   int64
	good             int64 // number of Ready pods on nodes that have not failed
	complete, failed bool
}

func (j *job) succeeded() int64 { return max(j.seen, j.reported) }

// open returns the number of completions that the Job still needs.
func (j *job) open() int64 {
	if j.complete {
		return 0
	}
	return max(0, j.completions-j.succeeded())
}

// missing returns the number of completions for which the Job has neither a succeeded nor a Ready pod.
func (j *job) missing() int64 { return max(0, j.open()-j.good) }

// jobCounts counts Jobs by state. A Job is waiting if all its pods have succeeded but its status is not Complete yet.
type jobCounts struct{ active, waiting, complete, failed int64 }

func (c *jobCounts) add(j *job) {
	switch {
	case j.complete:
		c.complete++
	case j.failed:
		c.failed++
	case j.open() == 0:
		c.waiting++
	default:
		c.active++
	}
}

func (d *deployment) hasJobs() bool {
	return d.workload() == scenario.Job || d.workload() == scenario.CronJob
}

func (d *deployment) counts() jobCounts {
	c := d.ended
	for _, j := range d.jobs {
		c.add(j)
	}
	return c
}

// eachOpen calls f with each Job of the workload, except failed Jobs of a CronJob.
func (d *deployment) eachOpen(f func(*job)) {
	for _, j := range d.jobs {
		if !j.failed || d.workload() == scenario.Job {
			f(j)
		}
	}
}

// wantJobs adds the Job of a deploy action to the tracked workload d. If d has no replicas, wantJobs removes its Jobs.
// Call it before the request is sent, so that the Job's pods count as missing immediately.
func (t *tracker) wantJobs(name string, d *deployment) {
	switch {
	case d.replicas == 0:
		d.jobs, d.ended, d.runs = nil, jobCounts{}, schedule{}
	case d.workload() == scenario.Job && d.jobs[name] == nil:
		d.jobs = map[string]*job{name: {completions: d.replicas}}
	}
}

func (t *tracker) sawJob(o object) {
	d := t.deployments[o.deployment]
	if d == nil || !d.hasJobs() || d.generation == deleted {
		return // the Job has the run's label, but no deploy action created it
	}
	j := d.jobs[o.name]
	if j == nil {
		j = &job{}
		if d.jobs == nil {
			d.jobs = map[string]*job{}
		}
		d.jobs[o.name] = j
		d.runs.began(o.deployment, o.name)
		t.recount() // the tracker may have seen the Job's pods before the Job
	}
	j.uid, j.completions, j.reported, j.complete, j.failed = o.uid, o.specReplicas, o.successes, o.complete, o.failed
	if d.workload() == scenario.Job {
		d.exists, d.status = true, o
	}
}

func (t *tracker) jobGone(o object) {
	d := t.deployments[o.deployment]
	if d == nil {
		return
	}
	if d.workload() == scenario.Job {
		d.exists = d.exists && d.status.uid != o.uid
		return
	}
	if j := d.jobs[o.name]; j != nil && j.uid == o.uid {
		if j.complete || j.failed {
			d.ended.add(j)
		}
		delete(d.jobs, o.name)
	}
}

func (t *tracker) succeeded(p *pod) {
	if j := t.of(p.deployment).jobs[p.job]; j != nil {
		j.seen++
	}
}

// runGrace is the delay after which a run of a CronJob counts as missed. The controller normally starts a run within a
// second.
const runGrace = 10 * time.Second

// schedule records the times at which a CronJob must start Jobs (its runs), and the runs that it has started.
type schedule struct {
	since time.Time
	every time.Duration
	begun map[int64]bool // whether a run has started, by its due time in minutes since 1970
}

// begin starts the schedule of the CronJob d. `at` is the time at which the API server accepted the CronJob.
func (s *schedule) begin(d *deployment, at time.Time) {
	if d.workload() == scenario.CronJob && s.since.IsZero() && d.generation != deleted {
		s.since, s.every = at, max(d.deploy.Every.D(), time.Minute)
	}
}

// began records that a run of a CronJob has begun. name is the name of the Job: the CronJob's name, "-", and the due
// time in minutes since 1970.
func (s *schedule) began(cronJob, name string) {
	suffix, _ := strings.CutPrefix(name, cronJob+"-")
	if minute, err := strconv.ParseInt(suffix, 10, 64); err == nil {
		if s.begun == nil {
			s.begun = map[int64]bool{}
		}
		s.begun[minute] = true
	}
}

// missed returns the number of runs that have not started and are overdue by more than runGrace.
func (s *schedule) missed(now time.Time) (n int64) {
	if s.since.IsZero() {
		return 0
	}
	for due := s.since.Truncate(s.every).Add(s.every); !due.After(now.Add(-runGrace)); due = due.Add(s.every) {
		if !s.begun[due.Unix()/60] {
			n++
		}
	}
	return n
}
