package alerts

import "time"

// Proof is what must fire an alert.
type Proof struct {
	// Name of the alert.
	Name string
	// Incident is the row of the mission that it is about ("I3"), empty for
	// what serves all of them.
	Incident string
	// Fault is its kind: one of the bundled plane's (package
	// controlplane/control) or of the simulated nodes' (nodeFailure). Empty
	// where load alone does it.
	Fault string
	// How it is done, and the size at which the alert must fire.
	How string
	// Scenario that has the fault, by name; empty where it takes a run of its
	// own with the fault as How says.
	Scenario string
	// Window is how much of the rule's range the fault has to fill before the
	// rule is over its threshold. Zero: the first sample is enough.
	Window time.Duration
	// Upstream is where the kubernetes-mixin or the etcd-mixin begins to alert
	// on the same, empty if it does not.
	Upstream string
}

const minute = time.Minute

// Table is the proofs of all alerts: rule, fault, scenario.
func Table() []Proof {
	return []Proof{
		{Name: "EtcdWALFsyncSlow", Incident: "I3", Fault: "slowFsync", Scenario: "slow-fsync", Window: 2 * minute,
			How: "each fsync of one member's log takes 10 ms longer", Upstream: "from a p99 of 0.5 s"},
		{Name: "EtcdWALFsyncVerySlow", Incident: "I2", Fault: "slowFsync", Scenario: "slow-fsync", Window: 2 * minute,
			How: "each fsync of one member's log takes 25 ms longer; a neighbour on the disk does the same", Upstream: "from a p99 of 0.5 s"},
		{Name: "EtcdBackendCommitSlow", Incident: "I2", Fault: "slowFsync", Window: 2 * minute,
			How: "files: all, 50 ms", Upstream: "from a p99 of 0.25 s"},
		{Name: "EtcdLeaderChanges", Incident: "I6", Fault: "pause",
			How: "the leader of three freezes for 2 s, twice", Upstream: "from 4 in 15 minutes"},
		{Name: "EtcdNoLeader", Incident: "I11", Fault: "kill",
			How: "two of three members are killed and stay away for a minute: the third says so", Upstream: "the same"},
		{Name: "EtcdQuorumLost", Incident: "I11", Fault: "kill",
			How: "two of three members are killed and stay away for a minute", Upstream: "the same"},
		{Name: "EtcdPeerSlow", Incident: "I6", Fault: "networkDelay", Window: 2 * minute,
			How: "20 ms in each direction between the members; etcd measures every 30 s", Upstream: "from a p99 of 0.15 s"},
		{Name: "EtcdDatabaseNearQuota", Fault: "etcdQuota", How: "the quota becomes 1.1 times the size of the database", Upstream: "from 95%"},
		{Name: "EtcdNoSpace", Fault: "etcdQuota", How: "the quota becomes smaller than the database, and something is written"},

		{Name: "APIServerLatencyBudgetFastBurn", Incident: "I7", Fault: "slowFsync", Window: 5 * minute,
			How: "each fsync takes 2 s longer, on a plane with no traffic before; after an hour of traffic it takes 9 minutes, 14.4% of the hour", Upstream: "its sum with 5xx is blind until there is a first 5xx"},
		{Name: "APIServerLatencyBudgetSlowBurn", Incident: "I7", Fault: "slowFsync", Window: 30 * minute,
			How: "each fsync takes 2 s longer; over recorded data", Upstream: "its sum with 5xx is blind until there is a first 5xx"},
		{Name: "APIServerErrors", Incident: "I11", Fault: "kill", Window: 5 * minute,
			How: "two of three etcd members are killed under writes", Upstream: "as part of the burn rate"},
		{Name: "APIServerPriorityLevelStarved", Incident: "I7", Window: 2 * minute,
			How: "LISTs in a loop, more than the seats of the level of their client"},
		{Name: "APIServerRequestsRejected", Incident: "I7", Window: 2 * minute,
			How: "LISTs in a loop, more than the seats and the queues of the level of their client", Upstream: "KubeAPITerminatedRequests, from 25% of all requests"},
		{Name: "APIServerWatchersTerminated", Incident: "I8",
			How: "watches with a slow consumer, of objects that change often"},
		{Name: "APIServerWatchesDropped", Incident: "I8", Fault: "restart",
			How: "the API server restarts under 10,000 watches that were open for over 2 minutes"},
		{Name: "APIServerWatchOverload", Incident: "I8", Window: 2 * minute,
			How: "3,000 watches of objects that change 10 times a second"},
		{Name: "APIServerHeavyLists", Incident: "I7", Window: 2 * minute,
			How: "6 LISTs a second of 2,000 objects each"},
		{Name: "APIServerEtcdSlow", Incident: "I2", Fault: "networkDelay", Window: 2 * minute,
			How: "60 ms in each direction between API server and etcd"},
		{Name: "WebhookSlow", Fault: "webhook", Window: 2 * minute, How: "a webhook that takes 1 s, asked about ConfigMaps"},
		{Name: "WebhookFailingOpen", Fault: "webhook", How: "a webhook that fails, with failurePolicy Ignore"},
		{Name: "WebhookBlockingWrites", Fault: "webhook", How: "a webhook that fails, with failurePolicy Fail"},

		{Name: "ControllerQueueDeep", Incident: "I9", Window: 2 * minute,
			How: "100 Deployments change at once, with 20 requests a second for the controllers"},
		{Name: "ControllerQueueSlow", Incident: "I9", Window: 2 * minute,
			How: "2,000 pods roll out, with 20 requests a second for the controllers"},
		{Name: "ClientThrottled", Incident: "I5", Window: 2 * minute,
			How: "300 pods are replaced, with 20 requests a second for the controllers"},
		{Name: "LeaseNotHeld", Incident: "I11", Fault: "partition",
			How: "API servers and etcd are cut apart for a minute: no lease can be renewed or taken; with standbys, whose processes stay"},
		{Name: "LeaseChurn", Incident: "I11", Fault: "kill", Scenario: "component-loss",
			How: "the leading scheduler or controller manager is killed twice, with a standby"},
		{Name: "NodesNotReady", Incident: "I10", Fault: "nodeFailure",
			How: "10% of the nodes of a zone fall silent; counted from the end of the grace period", Upstream: "per node, after 15 minutes, from kube-state-metrics"},
		{Name: "EvictionStorm", Incident: "I5", Fault: "nodeFailure", Window: 2 * minute,
			How: "a quarter of 24 nodes with 50 pods each fall silent; counted from the first eviction"},

		{Name: "SchedulerAttemptsSlow", Incident: "I4", Window: 2 * minute,
			How: "pods that keep apart and spread over zones, on 1,000 nodes, half of them scored"},
		{Name: "SchedulerLatencyCreep", Incident: "I4", Window: 5 * minute,
			How: "the same pods, after half an hour of plain ones; over recorded data"},
		{Name: "SchedulerBacklog", Incident: "I9",
			How: "pods come faster than the scheduler's 50 requests a second bind them, until 100 wait"},
		{Name: "SchedulerPodsUnschedulable", Incident: "I10", Fault: "nodeFailure",
			How: "half of the nodes fall silent, and the others have no room", Upstream: "KubePodNotReady after 15 minutes, from kube-state-metrics"},

		{Name: "DescriptorsRunningOut", Incident: "I1", Fault: "descriptorLimit",
			How: "the API server's limit becomes 1.1 times what it has open"},
		{Name: "TargetDown", Incident: "I11", Fault: "kill", Scenario: "component-loss",
			How: "any component is killed and stays away for 25 s or more", Upstream: "only when all of a component are gone, after 15 minutes"},
		{Name: "TargetAbsent", Fault: "", How: "the scrape configuration loses a job; in tests of the rules only", Upstream: "the same, after 15 minutes"},
		{Name: "MetricsMissing", Fault: "", How: "a family is dropped before it is stored; in tests of the rules only"},
		{Name: "ComponentRestarting", Incident: "I11", Fault: "kill",
			How: "a component is killed twice within 15 minutes", Upstream: "of containers, from kube-state-metrics"},

		{Name: "GeneratorSaturated", Fault: "", Window: 2 * minute, How: "a neighbour takes the CPUs from the generator, or it runs on a tenth of one"},
		{Name: "GeneratorLate", Fault: "", Window: 2 * minute, How: "as for GeneratorSaturated, under load"},
		{Name: "GeneratorUnsent", Incident: "I7", Fault: "pause", How: "the API server freezes for 10 s under an open loop with a small maxInFlight"},
	}
}
