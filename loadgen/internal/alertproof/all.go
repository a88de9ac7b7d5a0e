package alertproof

import "time"

// What follows from faults of several proofs.
const (
	lostLease    = "schedulers and controller managers that cannot renew their lease give up after 10 s and are started again"
	slowWrites   = "writes wait that long, or fail after it"
	startsAnew   = "a controller manager that has just got its lease lists everything through its own limiter"
	brokenWatch  = "without etcd the API server ends its watches; they come back"
	seatsAreHeld = "a write that waits keeps its seat of its priority level"
	etcdRestarts = "the fault starts the members with another quota, and at its end with the old one"
)

// All are the proofs, the cheapest to understand first, those without a fault last.
func All() []Proof {
	return []Proof{
		{
			Name:   "slow-path",
			Expect: []Expected{{Rule: "EtcdWALFsyncSlow", Phase: "disk"}, {Rule: "APIServerEtcdSlow", Phase: "link"}},
		},
		{
			Name: "slow-disk",
			Expect: []Expected{
				{Rule: "EtcdWALFsyncSlow", Phase: "slow"}, {Rule: "EtcdWALFsyncVerySlow", Phase: "slow"}, {Rule: "EtcdBackendCommitSlow", Phase: "slow"},
			},
			Allow: []Allowed{{[]string{"APIServerEtcdSlow"}, "a write that comes while another is on its way to the disk waits for two fsyncs, 100 ms"}},
		},
		{
			Name:   "peers",
			Expect: []Expected{{Rule: "EtcdPeerSlow", Phase: "links"}, {Rule: "EtcdLeaderChanges", Phase: "freezes", Last: true}},
			Allow: []Allowed{
				{[]string{"APIServerEtcdSlow"}, "each write waits for one round trip between members, 80 ms, and one that comes through a follower for two"},
				{[]string{"ComponentRestarting"}, lostLease},
			},
		},
		{
			Name: "quorum",
			Expect: []Expected{
				{Rule: "EtcdNoLeader", Phase: "lost"}, {Rule: "EtcdQuorumLost", Phase: "lost"}, {Rule: "APIServerErrors", Phase: "lost"},
				{Rule: "TargetDown", Phase: "lost"},
			},
			Allow: []Allowed{
				{[]string{"EtcdLeaderChanges"}, "the members elect a leader when they are a quorum again"},
				{[]string{"LeaseNotHeld", "LeaseChurn", "ComponentRestarting"}, lostLease},
				{[]string{"ClientThrottled", "ControllerQueueSlow"}, startsAnew},
				{[]string{"APIServerLatencyBudgetFastBurn", "APIServerLatencyBudgetSlowBurn", "APIServerEtcdSlow"}, slowWrites},
				{[]string{"APIServerPriorityLevelStarved", "APIServerRequestsRejected"}, seatsAreHeld},
				{[]string{"APIServerWatchesDropped", "APIServerWatchersTerminated"}, brokenWatch},
			},
		},
		{
			Name: "quota",
			Expect: []Expected{
				{Rule: "EtcdDatabaseNearQuota", Phase: "near"}, {Rule: "EtcdNoSpace", Phase: "full"}, {Rule: "LeaseNotHeld", Phase: "full"},
			},
			Allow: []Allowed{
				{[]string{"APIServerErrors"}, "every write is refused with a 500"},
				{[]string{"LeaseChurn"}, lostLease},
				{[]string{"ComponentRestarting", "EtcdLeaderChanges", "TargetDown"}, etcdRestarts},
				{[]string{"ClientThrottled", "ControllerQueueSlow"}, startsAnew},
				{[]string{"APIServerWatchesDropped", "APIServerWatchersTerminated"}, brokenWatch},
				{[]string{"EtcdBackendCommitSlow", "EtcdWALFsyncSlow", "APIServerEtcdSlow"}, "the databases are compacted and defragmented at the end of the fault"},
				{[]string{"APIServerLatencyBudgetSlowBurn"}, "requests wait for the only member while it starts, twice for each fault, and there are few others"},
			},
		},
		{
			Name: "webhook-slow",
			Expect: []Expected{
				{Rule: "WebhookSlow", Phase: "slow"}, {Rule: "APIServerPriorityLevelStarved", Phase: "slow"}, {Rule: "APIServerRequestsRejected", Phase: "slow"},
				{Rule: "APIServerLatencyBudgetFastBurn", Phase: "slow"}, {Rule: "APIServerLatencyBudgetSlowBurn", Phase: "slow"},
				{Rule: "GeneratorUnsent", Phase: "slow"},
			},
		},
		{
			Name:   "webhook-fails",
			Expect: []Expected{{Rule: "WebhookFailingOpen", Phase: "failing"}, {Rule: "WebhookBlockingWrites", Phase: "failing"}},
			Allow:  []Allowed{{[]string{"APIServerErrors"}, "a write that is refused as its webhook could not be asked is a 500"}},
		},
		{
			Name: "watches",
			Expect: []Expected{
				{Rule: "APIServerWatchersTerminated", Phase: "crowd"}, {Rule: "APIServerWatchOverload", Phase: "crowd"}, {Rule: "APIServerWatchesDropped", Phase: "gone"},
			},
		},
		{
			Name:   "lists",
			Expect: []Expected{{Rule: "APIServerHeavyLists", Phase: "loop"}, {Rule: "DescriptorsRunningOut", Phase: "limit"}},
		},
		{
			Name: "controllers",
			Expect: []Expected{
				{Rule: "ControllerQueueDeep", Phase: "pile"}, {Rule: "ControllerQueueSlow", Phase: "pile"}, {Rule: "ClientThrottled", Phase: "pile"},
			},
		},
		{
			Name: "kills",
			Expect: []Expected{
				{Rule: "TargetDown", Phase: "kills"}, {Rule: "LeaseChurn", Phase: "kills", Last: true}, {Rule: "ComponentRestarting", Phase: "kills", Last: true},
			},
			Allow: []Allowed{
				{[]string{"ClientThrottled", "ControllerQueueSlow"}, startsAnew},
				{[]string{"APIServerWatchesDropped"}, "80 of the 130 watches of a plane without nodes are those of the leaders that are killed"},
			},
		},
		{
			Name: "nodes",
			Expect: []Expected{
				{Rule: "NodesNotReady", Phase: "lost", Since: "max(node_collector_unhealthy_nodes_in_zone) > 0"},
				{Rule: "EvictionStorm", Phase: "lost", Since: "max(taint_eviction_controller_pod_deletions_total) > 0"},
				{Rule: "SchedulerPodsUnschedulable", Phase: "lost", Since: `max(scheduler_pending_pods{queue="unschedulable"}) > 0`},
			},
			Allow: []Allowed{
				{[]string{"APIServerWatchesDropped"}, "the watches of the lost nodes are gone with them"},
				{[]string{"SchedulerBacklog"}, "150 pods that fit nowhere are tried again whenever a pod or a node goes"},
			},
		},
		{
			Name: "scheduler",
			Expect: []Expected{
				{Rule: "SchedulerBacklog", Phase: "giants"}, {Rule: "SchedulerAttemptsSlow", Phase: "many"}, {Rule: "SchedulerLatencyCreep", Phase: "many"},
			},
			Allow: []Allowed{
				{[]string{"SchedulerPodsUnschedulable"}, "the giants fit nowhere for 2 minutes"},
				{[]string{"ClientThrottled"}, "the limiters of the scheduler and of the controllers are what makes pods come, go and be bound no faster"},
				{[]string{"ControllerQueueSlow"}, "the garbage collector is given 700 giants at once and deletes some dozens a second"},
			},
		},
		{
			Name:   "generator",
			Expect: []Expected{{Rule: "GeneratorSaturated", Phase: "starved"}, {Rule: "GeneratorLate", Phase: "starved"}},
			Allow:  []Allowed{{[]string{"GeneratorUnsent"}, "what was due while it was stopped is due at once afterwards"}},
			Stall:  Stall{Phase: "starved", For: 250 * time.Millisecond},
		},
		{Name: "healthy"},
		{
			Name: "monitoring", Scenario: "healthy",
			Expect: []Expected{{Rule: "TargetAbsent", Phase: "morning"}, {Rule: "MetricsMissing", Phase: "evening"}},
			Hide: []Hide{
				{Job: "kube-scheduler", Phase: "morning", After: 20 * time.Second, For: 3 * time.Minute},
				{Family: "etcd_disk_wal_fsync_duration_seconds", Phase: "evening", After: 20 * time.Second, For: 4 * time.Minute},
			},
		},
		{Name: "healthy-ha"},
	}
}
