package gate

const referenceHead = `# Objectives

A gate names an objective and a bound, or PromQL and a bound, or an alert:

` + "```yaml" + `
gates:
  - {name: api, objective: mutating-latency, max: 1s, over: [storm, recovery]}
  - {name: errors, objective: request-errors, max: 0.1%, load: patch-configmap}
  - {name: mine, expr: 'max(increase(etcd_server_slow_apply_total[$window]))', max: 0}
  - {name: page, alert: EtcdWALFsyncSlow, fires: false, over: [steady]}
` + "```" + `

This page is written by the program: ` + "`go test ./loadgen/internal/judge/gate -update`" + `.

A gate that cannot fail or cannot pass is an error of the file: a bound that every value holds (` + "`max: 100%`, `min: 0`" + `) or none
does (a latency of 0s), an objective without its subject, two gates of which one must fail, PromQL that never gives a value.

## Verdicts

A gate passes, fails, or has **no data**, which is never a pass. The exit code of a run is 1 if any gate failed, or if a
phase that a gate covers did not meet its condition; else 3 if anything could not be judged; else 0. If the environment
failed under the run it is 4.

**The worst phase counts.** Each phase in ` + "`over`" + ` has its own value and the gate takes the worst, so that a calm phase
does not dilute a storm. Three objectives (leader-changes, too-many-requests, generator-cpu) look at consecutive phases as
one window, the moments between them included. Ratios of requests are over all requests of all phases in ` + "`over`" + `.

**No data** is, for a gate: a target it reads that did not answer a scrape in the window, was not scraped at its
boundaries, or restarted; a metric that was not recorded; an expression that gives nothing, NaN, an infinity or several
series; a quantile past the last bucket that the bound does not tell apart; a phase that was interrupted or never
reached; a load that sent nothing; nothing observed in a phase that ` + "`over`" + ` names; a node failure whose end was not
seen, even if that of another was. Where ` + "`over`" + ` is left out, or names every phase, phases in which nothing happened
are passed over, but one at least must have data. A breach that was seen is a failure, whatever else is missing.

**The generator's own delay** is never held against the cluster. An objective that the generator measures ("client" below) has
a second value beside the first: what it would be at best without the generator's own part. That part is known per phase and load:

- a request's lag, from its intended start until the generator took it up;
- the time from when the kernel had its answer until the generator read it (Linux);
- the stall in which its answer was seen, or a watch's event. A 10 ms timer that fires over 1 ms late tells of one: the process was
  stopped, held to a share of a processor, or others had the machine; so does a goroutine that waited over 1 ms to be run. What ends in a stall, or in as much time again after it,
  may have been kept waiting since the stall began;
- of requests that failed: those that timed out after more than half of their time was our own, or came as a burst after a
  stall of 100 ms and more; of arrivals unsent: those that we came to 100 ms late, or in such a burst;
- of times in which many things happen (phases, pod startup, recovery from a node failure, registration of nodes): the
  stalls of 10 ms and more in them, added up.

A value that breaks the bound while the second holds it is **no data**, and both are told: "storm/gets: 581 ms is over 50 ms, 6 ms
without the generator's own delay is not". A breach that is there without our part is a failure. In a phase in which
the generator was saturated (below) a client objective has no data at all, whether it would have passed or failed.
Server-side metrics, and facts that no delay can make, such as a lost write, keep their verdict.

**A component that a fault kept away** is what the scenario asked for: scrapes lost between such a fault's begin and 15 s
after the component was ready again, and its new process, are no reason for doubt. That is so for the components that a
kill, restart, etcdQuota, etcdRestore, pause or descriptorLimit is on, and for schedulers and controller managers where
these are on etcd or an API server, or links are cut: they ask an API server who it is that wants their metrics. It is not
so under a slowFsync, diskContention, networkDelay or webhook, and not for etcd and API servers under a partition: scrapes
do not go over the links.

**A process that ended by itself** under a fault is the fault's doing, its scrapes excused likewise, if

- the fault is on it and does not end it anyway (under a kill, only the end that the supervisor asked for counts);
- it is a scheduler or controller manager, which end themselves without a lease, and the fault is on etcd, an API server,
  the links or the disk;
- it is an API server that was started and not yet ready, and the fault is on etcd, the links or the disk;

while the fault lasts or less than 30 s after it, or after a start that it made necessary. Any other is an unexpected exit,
and the run does not pass.

**What a process had counted** since its last scrape is gone with it; what it counts between two scrapes is known. A gate over
a window in which a process was lost judges what is known, and its detail says how much that is ("what kube-apiserver-0
counted is in it for 12 s of 20 s (kill)"): a pass is a pass of so much. When it is too little depends on the objective:

| objective | judged if | else |
|---|---|---|
| $shared | another instance of the component is known for all of the window (what one did not serve, it did), or each for half of it | no data |
| $each, ` + "`expr`" + ` | each instance is known for half of the window | no data |
| $seenByAll | another member is known for all of the window: each sees all changes | at least so many: it may fail, and does not pass a ` + "`max`" + ` |
| $count | nothing is missing | the same |
| $against | always: what is missing makes the generator's share larger | |

A pause loses nothing: the process counts on. What the API server measures leaves out in any case what it never answered:
requests that were under way when it was killed, and all that came while nobody served. Judge the fault itself by what the
generator measures, which misses none: request-latency, request-errors, error-window, time-to-objective.

**No data for the run as a whole** is: it was interrupted; a process ended, or a scrape of any target was lost, and no fault
accounts for it; a fault of the scenario never began, or was lost before its time; a file of its directory is missing,
damaged or not the one that the run wrote; its scenario is not the one that was run; the scenario has no gates; or the generator was saturated. It is saturated past these bounds, each of them in a phase:

| bound | why there |
|---|---|
| its 10 ms timer fires over 100 ms late in a phase (p99, swallowed ticks counted), for half a second at least | a tenth of the 1 s objective that latencies from the intended start are most often held against |
| a load of 100 requests or more in a phase was taken up over 100 ms late (p99) | the same tenth: lag is part of the latency that is judged |
| over 1 MiB of answers and events had come and were not read, at ten looks in a row a second apart | a burst is read by the next look or the one after; who never catches up times every event late |
| it used over 80% of the memory of the machine or its control group | past that the kernel reclaims pages in use, or kills |
| it had over 90% of its descriptor limit open | past that a burst of connections fails here and looks like a fault of the cluster |

## PromQL

` + "`expr`" + ` is evaluated at the end of each phase, over the scrapes in the run's archive; ` + "`$window`" + ` is the range that takes
in the scrapes at the phase's start and end. A counter that first appears during a phase is given a zero at the scrape
before, so ` + "`increase`" + ` misses nothing; it extrapolates by one millisecond of the phase at most (by up to a scrape
interval at a boundary where a fault kept the target away), so wrap counts in ` + "`round()`" + `. Name every metric: the
recorder keeps its own list of families and those that gates name. The value is in the unit of the bound.

No ` + "`or vector(0)`" + ` makes a value of what nobody could have counted: a selector of a job or an instance that was not scraped, or
of a label that its metric has not, is no data, and so is a metric that has no series in the whole run. Only of the metrics of
[alerts.md](alerts.md), which components are known to have, is that taken for "nothing happened", and the detail says so.
A label's value may come with its first event: ` + "`sum(increase(apiserver_request_total{code=\"503\"}[$window])) or vector(0)`" + ` is 0 before it.

Quantiles of scraped histograms are interpolated within a bucket; the detail of a gate says between which edges. A bound
on an edge of the buckets is exact. What the generator measures itself is exact to three digits.

## Alerts

` + "`alert`" + ` names one of [alerts.md](alerts.md); ` + "`fires: true`" + ` passes where it fired at some time of the phases in ` + "`over`" + `,
` + "`fires: false`" + ` where it did not. The rules are evaluated by Prometheus' own code over the scrapes in the archive, from the first
on, each group as often as it says; records, ` + "`for`" + ` and templates are as in Prometheus. One that fired before a phase and still
does, fires in it.

An alert that was seen to fire is a fact. Its silence proves nothing, and is no data, where a metric that it reads was not
recorded, or has no such label, or its job was not scraped; where a scrape was lost or a phase not reached, as for any
other gate; where the rule cannot be evaluated; where the run had not lasted for as long as its ` + "`for`" + ` and its offsets by
then; where a fault kept a target that it reads away for more than half of a phase; and where phases were over before its
group, or that of a record that it reads, was evaluated once in them. A group without an interval is evaluated once a
minute, as by Prometheus: write one into rules that are to judge short phases. A counter of the shipped rules that has no
series yet had nothing to count: the detail names it.

A run can be judged by other gates than its own, and by rules of yours, of which none must fire:

    loadgen gate runs/20261121-101500-rollout-500 --rules gates.yaml
    loadgen gate runs/20261121-101500-rollout-500 --rules prometheus-rules.yaml --summary "$GITHUB_STEP_SUMMARY"

## The objectives
`
