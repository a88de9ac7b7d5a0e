package gate

const referenceHead = `# Objectives

What a gate can judge: an objective and a bound, PromQL and a bound, or an alert.

` + "```" + `yaml
gates:
  - {name: api, objective: mutating-latency, max: 1s, over: [storm, recovery]}
  - {name: errors, objective: request-errors, max: 0.1%, load: patch-configmap}
  - {name: mine, expr: 'max(increase(etcd_server_slow_apply_total[$window]))', max: 0}
  - {name: page, alert: EtcdWALFsyncSlow, fires: false, over: [steady]}
` + "```" + `

A gate that cannot fail or cannot pass is an error of the file: a bound that every value holds (` + "`max: 100%`, `min: 0`" + `) or none does (a
latency of 0s), an objective without its subject, two gates of which one must fail, PromQL that never gives a value. ` + "`go test ./loadgen/internal/judge/gate -update`" + ` writes this page.

Judge a recorded run by other gates, or by Prometheus rules of which none may fire:

` + "```" + `sh
loadgen gate runs/20261121-101500-rollout-500 --rules gates.yaml
loadgen gate runs/20261121-101500-rollout-500 --rules prometheus-rules.yaml --summary "$GITHUB_STEP_SUMMARY"
` + "```" + `

## Verdicts

A gate passes, fails, or has **no data**, which is never a pass. A run exits with 1 if a gate failed or a phase that a gate covers
did not meet its condition; else with 3 if anything could not be judged; else with 0. If the environment failed it is 4.

**The worst phase counts.** Each phase in ` + "`over`" + ` has its own value and the gate takes the worst. Three objectives (leader-changes,
too-many-requests, generator-cpu) take consecutive phases as one window, including the time between them. Ratios of requests are
over all requests of all phases in ` + "`over`" + `.

### No data for a gate

- A target that it reads did not answer a scrape in the window, was not scraped at its boundaries, or restarted.
- A metric was not recorded; the expression gives nothing, NaN, an infinity or several series; a quantile lies past the last bucket
  and the bound cannot be told from it.
- A phase was interrupted or not reached; a load sent nothing; nothing was observed in a phase that ` + "`over`" + ` names; the end of a
  node failure was not seen, even if another's was.

Where ` + "`over`" + ` is left out or names every phase, phases without events are passed over, but one must have data. A breach that was seen
is a failure, whatever else is missing.

### The generator's own delay

It is never held against the cluster. A "client" objective below has a second value: what it would be at best without the
generator's part, known per phase and load:

- a request's lag, from its intended start until the generator took it up;
- the time from the kernel having its answer until the generator read it (Linux);
- the stall in which an answer or watch event was seen: a 10 ms timer fired over 1 ms late, or a goroutine waited over 1 ms to run
  (the process was stopped or short of CPU). What ends in a stall, or within its length after it, may have waited since its start;
- failed requests that timed out after more than half of their time was ours, or in a burst after a stall of 100 ms and more;
  unsent arrivals that were taken up 100 ms late, or in such a burst;
- for durations of many steps (phases, pod startup, node-failure recovery, registration): the sum of stalls of 10 ms and more.

A breach that the second value does not share is **no data**, and both are printed: "storm/gets: 581 ms is over 50 ms, 6 ms without
the generator's own delay is not". In a phase with a [saturated generator](#no-data-for-the-run) a client objective has no data at all. Server-side
metrics, and facts that no delay can make, such as a lost write, keep their verdict.

### Components under a fault

**Excused scrapes.** Lost scrapes and the new process are expected from a fault's begin until 15 s after the component is ready again, for
the components of a kill, restart, etcdQuota, etcdRestore, pause or descriptorLimit. They are also expected of schedulers and controller managers
where such a fault is on etcd or an API server, or links are cut, as these ask an API server to authorize a scrape. Not excused: slowFsync,
diskContention, networkDelay, webhook; etcd and API servers under a partition (scrapes do not use the links).

**Excused exits**, while the fault lasts and for 30 s after it or after a start that it made necessary:

- a process that the fault is on and does not itself end (under a kill, only the end that the supervisor asked for);
- a scheduler or controller manager, where the fault is on etcd, an API server, the links or the disk: without a lease they exit;
- an API server not yet ready, where the fault is on etcd, the links or the disk.

Any other exit is unexpected, and the run does not pass.

**Counts of a lost process** since its last scrape are gone. A gate over such a window judges what is known, and its detail says how
much that is ("what kube-apiserver-0 counted is in it for 12 s of 20 s (kill)"):

| objective | judged if | else |
|---|---|---|
| $shared | another instance is known for the whole window, or each for half of it | no data |
| $each, ` + "`expr`" + ` | each instance is known for half of the window | no data |
| $seenByAll | another member is known for the whole window | at least so many: may fail, does not pass a ` + "`max`" + ` |
| $count | nothing is missing | the same |
| $against | always: what is missing raises the generator's share | |

A pause loses nothing. The API server never measures requests that it did not answer; judge a fault itself by
request-latency, request-errors, error-window and time-to-objective, which the generator measures.

### No data for the run

The run was interrupted; a process ended or a scrape was lost without a fault to explain it; a fault never began or was lost early; a
file of the run is missing, damaged or not the one written; its scenario is not the one that ran; there are no gates; or the generator was
saturated, by one of these bounds in a phase:

| bound | why there |
|---|---|
| its 10 ms timer fires over 100 ms late (p99, swallowed ticks counted), for half a second at least | a tenth of the 1 s objective for latencies |
| a load of 100 requests or more was taken up over 100 ms late (p99) | the same tenth: lag is part of the latency |
| over 1 MiB of answers and events unread at ten looks in a row, a second apart | a generator that never catches up times every event late |
| over 80% of the memory of the machine or its control group in use by it | beyond it the kernel reclaims pages or kills |
| over 90% of its descriptor limit open | beyond it connections fail here and look like a fault of the cluster |

## PromQL

` + "`expr`" + ` is evaluated at the end of each phase over the run's archive; ` + "`$window`" + ` takes in the scrapes at the phase's start and end.
Its value is in the unit of the bound.

- A counter that first appears during a phase gets a zero at the scrape before. ` + "`increase`" + ` extrapolates by a millisecond at most (by a
  scrape interval at a boundary where a fault kept the target away): wrap counts in ` + "`round()`" + `.
- Name every metric: the recorder keeps its own list and those that gates name.
- ` + "`or vector(0)`" + ` gives no data where nothing could be counted: a job or instance that was not scraped, a label that the metric does not
  have, a metric without any series in the run. Only for the metrics of [alerts.md](alerts.md) a missing series counts as zero events, and the detail says
  so. A label value may come with its first event: ` + "`sum(increase(apiserver_request_total{code=\"503\"}[$window])) or vector(0)`" + ` is 0 before it.
- Quantiles of scraped histograms are interpolated within a bucket; the detail names its edges. A bound on an edge is exact. What the
  generator measures is exact to three digits.

## Alert gates

` + "`alert`" + ` names one of [alerts.md](alerts.md). ` + "`fires: true`" + ` passes where it fired in the phases of ` + "`over`" + `, also if it began before; ` + "`fires: false`" + ` where it
did not. Prometheus' own code evaluates the rules over the archive from the first scrape, each group at its interval.

An alert that fired is a fact. Silence is no data where: a metric or label that it reads was not recorded, or its job not scraped; a scrape
was lost or a phase not reached; the rule cannot be evaluated; the run was shorter than ` + "`for`" + ` and offsets; a fault kept a target away for more than
half of a phase; or its group was evaluated less than once in the phase. Without an interval a group is evaluated once a minute: write one
into rules that judge short phases. A counter of the shipped rules without a series had nothing to count; the detail names it.

## The objectives
`
