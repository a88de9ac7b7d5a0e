package alerts

import "time"

// Proof names what must fire an alert.
type Proof struct {
	// Name of the alert.
	Name string
	// Incident is the row of the mission that it is about ("I3"), empty for
	// what serves all of them.
	Incident string
	// Fault is its kind: one of the bundled plane's (package
	// controlplane/control) or of the simulated nodes' (nodeFailure). Empty
	// where load alone does it, or something is done to the monitoring itself.
	Fault string
	// How it is done, and the size at which the alert must fire.
	How string
	// Run is the proof that fires it, by name: `loadgen alerts prove` runs it.
	Run string
	// Window is how long a fault of that size lasts until the rule is over its
	// threshold, as far as the rule and what it reads make it so: the
	// threshold's share of the rule's range, where every observation is hit and
	// as many came before; a period of its own that a component measures in.
	// Zero: the first sample is enough.
	Window time.Duration
	// Smallest is the smallest fault that fires it, by arithmetic.
	Smallest string
	// Upstream is where the kubernetes-mixin or the etcd-mixin begins to alert
	// on the same, empty if it does not.
	Upstream string
}

const (
	second = time.Second
	minute = time.Minute
)

// Table is the proofs of all alerts: rule, fault, run.
func Table() []Proof {
	var all []Proof
	for _, part := range [][]Proof{ofEtcd(), ofAPIServer(), ofControllers(), ofScheduler(), ofTargets(), ofGenerator()} {
		all = append(all, part...)
	}
	return all
}

func ofEtcd() []Proof {
	return []Proof{
		{Name: "EtcdWALFsyncSlow", Incident: "I3", Fault: "slowFsync", Run: "slow-path", Window: 12 * second,
			How:      "each fsync of one member's log takes 10 ms longer",
			Smallest: "a tenth of the fsyncs over 8 ms, for 72 s where all are: a delay of 8 ms less what the disk takes itself", Upstream: "from a p99 of 0.5 s, for 10 minutes"},
		{Name: "EtcdWALFsyncVerySlow", Incident: "I2", Fault: "slowFsync", Run: "slow-disk", Window: 30 * second,
			How:      "each fsync of one member, of the log and of the database, takes 50 ms longer; a neighbour on the disk does the same",
			Smallest: "a quarter of the fsyncs over 16 ms, for 90 s where all are", Upstream: "from a p99 of 0.5 s, for 10 minutes"},
		{Name: "EtcdBackendCommitSlow", Incident: "I2", Fault: "slowFsync", Run: "slow-disk", Window: 12 * second,
			How:      "the same: a commit is two fsyncs",
			Smallest: "a tenth of the commits over 32 ms: fsyncs of the database that take 16 ms", Upstream: "from a p99 of 0.25 s, for 10 minutes"},
		{Name: "EtcdLeaderChanges", Incident: "I6", Fault: "pause", Run: "peers", Window: 2 * second,
			How:      "the leader of three freezes for 3 s, twice; counted from the second time",
			Smallest: "two elections within an hour: two freezes of over an election timeout, 1 s", Upstream: "from 4 in 15 minutes, for 5"},
		{Name: "EtcdNoLeader", Incident: "I11", Fault: "kill", Run: "quorum", Window: 2 * second,
			How:      "two of three members are killed and stay away for a minute: the third says so",
			Smallest: "47 s without a leader: for, and a round of evaluation; 30 s where the rounds fall well", Upstream: "the same, after a minute"},
		{Name: "EtcdQuorumLost", Incident: "I11", Fault: "kill", Run: "quorum",
			How:      "two of three members are killed and stay away for a minute",
			Smallest: "50 s without an answer from half of the members; 30 s where scrapes and rounds fall well", Upstream: "the same, after 3 minutes"},
		{Name: "EtcdPeerSlow", Incident: "I6", Fault: "networkDelay", Run: "peers", Window: 60 * second,
			How: "40 ms in each direction between the members. etcd smooths the round trip over 8 probes, 4 s apart, and tells it every 30 s: 49 ms " +
				"after the first 30 s of it, 69 ms after 60 s, and two of the four in the range lift their mean over 25 ms",
			Smallest: "13 ms in each direction, after some minutes; 20 ms after two", Upstream: "from a p99 of 0.15 s, for 10 minutes"},
		{Name: "EtcdDatabaseNearQuota", Fault: "etcdQuota", Run: "quota",
			How:      "the quota becomes 36 MiB, of a database of 32 MB and some",
			Smallest: "over 80% of the quota for a minute", Upstream: "from 95%, for 10 minutes; or full within 4 hours at the present rate, for 10 minutes"},
		{Name: "EtcdNoSpace", Fault: "etcdQuota", Run: "quota",
			How: "the quota becomes 1 MiB, of a database of 32 MB and some", Smallest: "any size over the quota, seen by one scrape", Upstream: "as from 95%, after 10 minutes"},
	}
}

func ofAPIServer() []Proof {
	return []Proof{
		{Name: "APIServerLatencyBudgetFastBurn", Incident: "I7", Fault: "webhook", Run: "webhook-slow", Window: 43 * second,
			How:      "creates wait 5 s for an admission webhook, on a plane with little traffic before; after an hour of traffic it takes 8 min 38 s, 14.4% of the hour",
			Smallest: "14.4% of the requests of a class over 1 s (lists 30 s), in 5 minutes and in the hour", Upstream: "its sum with 5xx is blind until there is a first 5xx, and its histogram leaves out webhooks and queueing"},
		{Name: "APIServerLatencyBudgetSlowBurn", Incident: "I7", Fault: "webhook", Run: "webhook-slow", Window: 108 * second,
			How: "the same", Smallest: "6% of the requests of a class over 1 s (lists 30 s), in 30 minutes and in 6 hours", Upstream: "its sum with 5xx is blind until there is a first 5xx, and its histogram leaves out webhooks and queueing"},
		{Name: "APIServerErrors", Incident: "I11", Fault: "kill", Run: "quorum", Window: 22 * second,
			How:      "two of three etcd members are killed under writes, which fail after 7 s each",
			Smallest: "5% of all answers of 5 minutes for another minute: an outage of 15 s of a plane that only writes", Upstream: "as part of the burn rate"},
		{Name: "APIServerPriorityLevelStarved", Incident: "I7", Fault: "webhook", Run: "webhook-slow", Window: 20 * second,
			How:      "40 creates a second hold a seat for 5 s each, of at most 92 that their level can have",
			Smallest: "a tenth of the requests of a level waiting over 1 s, for 72 s where all do"},
		{Name: "APIServerRequestsRejected", Incident: "I7", Fault: "webhook", Run: "webhook-slow", Window: 16 * second,
			How:      "the same: after 15 s in a queue, a quarter of the request timeout, it is over",
			Smallest: "12 rejections within 2 minutes, and as many in the minute after", Upstream: "KubeAPITerminatedRequests, from a fifth of all requests, for 5 minutes"},
		{Name: "APIServerWatchersTerminated", Incident: "I8", Run: "watches", Window: 17 * second,
			How:      "30 watches take 68 KiB a second of some 90 that come, and have room for what is over for 12 s; those that come back are ended again after 4",
			Smallest: "26 watches of a resource ended within 5 minutes"},
		{Name: "APIServerWatchesDropped", Incident: "I8", Run: "watches", Window: 5 * second,
			How:      "400 of some 520 watches, open for two and a half minutes, go away at once",
			Smallest: "30% of the watches, of over 100 that were open 2 minutes before"},
		{Name: "APIServerWatchOverload", Incident: "I8", Run: "watches", Window: 30 * second,
			How:      "the slow watches hold back a quarter of their events by up to 1.3 s",
			Smallest: "a twentieth of the events of a resource over 250 ms late, for 66 s where all are; or 20,000 events a second from one server"},
		{Name: "APIServerHeavyLists", Incident: "I7", Run: "lists", Window: 20 * second,
			How:      "15 LISTs a second of 4,000 objects each",
			Smallest: "10,000 objects a second read by LISTs of one resource, for 3 minutes; ten times as many for 72 s"},
		{Name: "APIServerEtcdSlow", Incident: "I2", Fault: "networkDelay", Run: "slow-path", Window: 12 * second,
			How:      "60 ms in each direction between API server and etcd",
			Smallest: "a tenth of the requests over 100 ms, for 132 s where all are: 50 ms in each direction"},
		{Name: "WebhookSlow", Fault: "webhook", Run: "webhook-slow", Window: 17 * second,
			How: "a webhook that takes 5 s, asked about ConfigMaps; counted when it has answered", Smallest: "a tenth of its answers over 500 ms, for 72 s where all are"},
		{Name: "WebhookFailingOpen", Fault: "webhook", Run: "webhook-fails", How: "a webhook on Secrets that fails, with failurePolicy Ignore",
			Smallest: "one request that passed without it"},
		{Name: "WebhookBlockingWrites", Fault: "webhook", Run: "webhook-fails", How: "a webhook on ConfigMaps that fails, with failurePolicy Fail",
			Smallest: "two refusals that are over a minute and under three apart, or one series of them of a minute"},
	}
}

func ofControllers() []Proof {
	return []Proof{
		{Name: "ControllerQueueDeep", Incident: "I9", Run: "controllers", Window: 2*minute + 10*second,
			How:      "40 ReplicaSets a second are made, then 10, with 10 requests a second for the controllers, and a burst of 100: over 500 keys wait, as each that is written comes back",
			Smallest: "51 keys at every scrape for 3 minutes"},
		{Name: "ControllerQueueSlow", Incident: "I9", Run: "controllers", Window: 17 * second,
			How: "the same: a key waits 30 s", Smallest: "a tenth of the keys waiting over 1 s, for 192 s where all do; a burst that is over within 45 s is none"},
		{Name: "ClientThrottled", Incident: "I5", Run: "controllers", Window: 17 * second,
			How:      "the same: five workers share 10 requests a second, so each waits half a second",
			Smallest: "a tenth of the requests waiting over 250 ms, for 192 s where all are: five workers that have more to do than 20 requests a second, upstream's default, just stay below"},
		{Name: "LeaseNotHeld", Incident: "I11", Fault: "etcdQuota", Run: "quota", Window: 15 * second,
			How:      "etcd is out of space: no lease can be renewed, the holders give up after 10 s, start again and can take none",
			Smallest: "30 s in which all replicas that answer are standbys"},
		{Name: "LeaseChurn", Incident: "I11", Fault: "kill", Run: "kills", Window: 62 * second,
			How:      "the leading scheduler is killed for 60 s, twice, with a standby; counted from the second time, whose process has to be back to say that it leads no more",
			Smallest: "two moves of a lease within an hour"},
		{Name: "NodesNotReady", Incident: "I10", Fault: "nodeFailure", Run: "nodes",
			How:      "half of the 20 nodes of a zone fall silent; counted from the end of the grace period",
			Smallest: "over 5% of the nodes of a zone, and more than one, for 30 s after their grace period: two of 39", Upstream: "per node, after 15 minutes, from kube-state-metrics"},
		{Name: "EvictionStorm", Incident: "I5", Fault: "nodeFailure", Run: "nodes", Window: 10 * second,
			How:      "their 200 pods are evicted, 20 a second; counted from the first",
			Smallest: "121 evictions within 2 minutes"},
	}
}

func ofScheduler() []Proof {
	return []Proof{
		{Name: "SchedulerAttemptsSlow", Incident: "I4", Run: "scheduler", Window: 12 * second,
			How:      "200 pods come at once and the scheduler may make 5 requests a second: each binding waits for those before it",
			Smallest: "a tenth of the successful attempts over 512 ms, for 72 s where all are"},
		{Name: "SchedulerLatencyCreep", Incident: "I4", Run: "scheduler",
			How:      "the same, five and a half minutes after five pods that waited for nothing",
			Smallest: "a mean over 20 ms and over twice that of the half hour that ended 5 minutes ago, for 2 minutes"},
		{Name: "SchedulerBacklog", Incident: "I9", Run: "scheduler",
			How:      "700 pods that fit nowhere come at once, and the scheduler writes that down for 5 of them a second before it looks at the next",
			Smallest: "101 pods in the active or the backoff queue for a minute"},
		{Name: "SchedulerPodsUnschedulable", Incident: "I10", Fault: "nodeFailure", Run: "nodes",
			How:      "half of the nodes fall silent and the others have no room for 150 of their pods; counted from the first that found none",
			Smallest: "one pod that fits nowhere for 2 minutes", Upstream: "KubePodNotReady after 15 minutes, from kube-state-metrics"},
	}
}

func ofTargets() []Proof {
	return []Proof{
		{Name: "DescriptorsRunningOut", Incident: "I1", Fault: "descriptorLimit", Run: "lists",
			How:      "the API server's limit becomes 1,300 with 1,000 watches open, each on a connection of its own",
			Smallest: "over 80% of the descriptors at one scrape"},
		{Name: "TargetDown", Incident: "I11", Fault: "kill", Run: "kills",
			How:      "the leading scheduler and a controller manager are killed and stay away for 60 s",
			Smallest: "50 s without an answer; 30 s where scrapes and rounds fall well", Upstream: "after 15 minutes; of etcd after 10"},
		{Name: "TargetAbsent", Fault: "", Run: "monitoring",
			How:      "the job kube-scheduler is taken out of the recorded data for 3 minutes, as by a scrape configuration that lost it",
			Smallest: "a minute without a target", Upstream: "the same, after 15 minutes"},
		{Name: "MetricsMissing", Fault: "", Run: "monitoring",
			How:      "etcd_disk_wal_fsync_duration_seconds is taken out of the recorded data for 4 minutes, as by relabelling",
			Smallest: "2 minutes without the family"},
		{Name: "ComponentRestarting", Incident: "I11", Fault: "kill", Run: "kills", Window: 62 * second,
			How:      "a controller manager is killed for 60 s, twice; counted from the second time",
			Smallest: "two starts within 15 minutes, of a process whose CPU time had come further than that of the next at its first scrape", Upstream: "of containers that wait in CrashLoopBackOff, for 15 minutes, from kube-state-metrics"},
	}
}

func ofGenerator() []Proof {
	return []Proof{
		{Name: "GeneratorSaturated", Fault: "", Run: "generator", Window: 10 * second,
			How: "the generator is stopped for 250 ms in each second", Smallest: "1% of its timer's ticks over 128 ms late: one stop of 140 ms a second"},
		{Name: "GeneratorLate", Fault: "", Run: "generator", Window: 10 * second,
			How: "the same", Smallest: "1% of the requests of a load over 128 ms late"},
		{Name: "GeneratorUnsent", Fault: "webhook", Run: "webhook-slow", Window: 2 * second,
			How: "5 creates a second that take 5 s each, and 5 may be open", Smallest: "one request that was not sent"},
	}
}
