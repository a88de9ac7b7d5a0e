package source

// etcd: its disk, Raft, the links between members, the database.
func etcd() board {
	return board{
		uid: "stormglass-etcd", title: "Stormglass / etcd", jobs: jobEtcd,
		tells: "The disk first, as every write of the cluster waits for it; then Raft, the links between members, and the database against its quota.",
		rows: []row{
			{"Disk", []panel{
				{
					title: "WAL fsync, p99 and median", unit: "s", log: true, warn: 0.010, bad: 0.016, moves: []string{"slowFsync", "diskContention"},
					queries: walFsync(),
					tells:   "Interpolated between edges of 1 ms times powers of two. A hitch lifts the p99 alone, a slow disk both. One member: its disk. All: the load.",
					do:      "a disk of its own, local SSD or NVMe; take logs, images and backups off it. Do not raise etcd's timeouts first: that hides the disk.",
				}, {
					title: "WAL fsync: how long each took", kind: "heatmap", unit: "s", moves: []string{"slowFsync"},
					queries: []query{q(buckets("etcd_disk_wal_fsync_duration_seconds", "@etcd"), "{{le}}")},
					tells:   "The number of fsyncs in each bucket. Two bands are two kinds of fsync: a neighbour on the disk, or a cache that fills now and then. A p99 shows only the upper one.",
					do:      "compare with the times of backups, snapshots and batch jobs on the same disk.",
				}, {
					title: "WAL fsyncs over 8 ms and over 16 ms", unit: "percentunit", max: 1, warn: 0.1, bad: 0.25, moves: []string{"slowFsync"},
					queries: []query{
						q(`instance:etcd_disk_wal_fsync_over_8ms:ratio_rate2m{@irecord}`, "{{instance}} over 8 ms"),
						q(`instance:etcd_disk_wal_fsync_over_16ms:ratio_rate2m{@irecord}`, "{{instance}} over 16 ms"),
					},
					tells: "Shares over edges of buckets, so exact. EtcdWALFsyncSlow fires when 10% are over 8 ms, EtcdWALFsyncVerySlow when 25% are over 16 ms.",
					do:    "as for the p99; if it is the leader alone, move the leadership to a member with a sound disk.",
				}, {
					title: "Backend commit p99", unit: "s", log: true, warn: 0.025, bad: 0.1,
					queries: []query{q(p99("etcd_disk_backend_commit_duration_seconds", "@etcd", "instance"), "{{instance}}")},
					tells:   "Writing the database file, apart from the log. Reads wait while a commit holds its lock. Sound disks stay below 25 ms.",
					do:      "if fsync is slow too, it is the disk; if commits alone are, look for large objects, and compact and defragment.",
				}, {
					title: "Backend commits over 32 ms", unit: "percentunit", max: 1, warn: 0.1,
					queries: []query{q(`instance:etcd_disk_backend_commit_over_32ms:ratio_rate2m{@irecord}`, "{{instance}}")},
					tells:   "The share that EtcdBackendCommitSlow is about (over 10%).",
					do:      "see whether a defragmentation or a snapshot runs; then as for the p99.",
				}, {
					title: "Written to the log", unit: "Bps", queries: []query{q(rate("etcd_disk_wal_write_bytes_total", "@etcd", "instance"), "{{instance}}")},
					tells: "Bytes per second. Latency that rises while this does not is the disk's; if both rise, it is the load.",
					do:    "find who writes: puts by resource in the API server's dashboard.",
				},
			}},
			{"Raft", []panel{
				{
					title: "Members with a leader", kind: "state-timeline", unit: "bool_yes_no", warn: 0.5, falls: true, moves: []string{"kill etcd", "partition etcd"},
					queries: []query{q(`max by (instance) (etcd_server_has_leader{@etcd})`, "{{instance}}")},
					tells:   "A member without a leader takes no writes and no linearizable reads. All of them: no quorum.",
					do:      "one: it is cut off. All: bring back members until a majority runs. Only if their data is lost, restore a snapshot.",
				}, {
					title: "Who leads", kind: "state-timeline", unit: "bool_yes_no", moves: []string{"pause etcd", "partition etcd"},
					queries: []query{q(`max by (instance) (etcd_server_is_leader{@etcd})`, "{{instance}}")},
					tells:   "Each change of the row that says yes is an election.",
					do:      "if the leader moves without anybody having restarted it, look at round trips and at its fsync before.",
				}, {
					title: "Leader changes seen", unit: "short", moves: []string{"pause etcd", "partition etcd"},
					queries: []query{q(`max by (instance) (etcd_server_leader_changes_seen_total{@etcd})`, "{{instance}}")},
					tells:   "Since each member started; the first counts too. A step up is an election.",
					do:      "more than one an hour: the network between members, a slow disk, or a process starved of CPU.",
				}, {
					title: "Proposals", unit: "ops",
					queries: []query{
						q(rate("etcd_server_proposals_committed_total", "@etcd", "instance"), "{{instance}} committed"),
						q(rate("etcd_server_proposals_failed_total", "@etcd", "instance"), "{{instance}} failed"),
					},
					tells: "Writes that went through Raft. Failed ones are elections or a lost quorum.",
					do:    "any failed proposal is a write that a client has to repeat: see who leads.",
				}, {
					title: "Proposals that wait", unit: "short", warn: 5, moves: []string{"pause etcd"},
					queries: []query{q(`max by (instance) (etcd_server_proposals_pending{@etcd})`, "{{instance}}")},
					tells:   "Writes that are not committed yet. A few under load are normal; a climb is a disk or a quorum that does not keep up.",
					do:      "fsync and round trips; if both are sound, the write rate is more than this etcd can take.",
				}, {
					title: "Apply p99", unit: "s", log: true, warn: 0.1,
					queries: []query{q(p99("etcd_server_apply_duration_seconds", "@etcd", "op"), "{{op}}")},
					tells:   "From committed to done, by kind of request. Slow applies are large ranges or transactions, not the disk.",
					do:      "look for LISTs of everything without a limit, and for objects of over 100 kB.",
				},
			}},
			{"Between the members", []panel{
				{
					title: "Round trip to peers, mean", unit: "s", log: true, warn: 0.025, moves: []string{"networkDelay etcd"},
					queries: []query{q(`instance_to:etcd_network_peer_round_trip_time_seconds:mean_rate2m{@irecord}`, "{{instance}} to {{To}}").or(loneMember)},
					tells:   "etcd measures each link every 30 s. Every write waits for the fastest majority.",
					do:      "one member slow: its host. All: the network. Keep members within a few milliseconds of each other.",
				}, {
					title: "Messages that could not be sent", unit: "cps", moves: []string{"pause etcd"},
					queries: []query{
						q(rate("etcd_network_peer_sent_failures_total", "@etcd", "instance", "To"), "{{instance}} to {{To}}").or(noSendError),
						q(rate("etcd_server_heartbeat_send_failures_total", "@etcd", "instance"), "{{instance}} heartbeats"),
					},
					tells: "Failures towards peers, and heartbeats that the leader could not send in time (a disk or a CPU that stalls it).",
					do:    "peers: the link. Heartbeats: the leader's disk and CPU.",
				}, {
					title: "Traffic with clients", unit: "Bps",
					queries: []query{
						q(rate("etcd_network_client_grpc_sent_bytes_total", "@etcd", "instance"), "{{instance}} sent"),
						q(rate("etcd_network_client_grpc_received_bytes_total", "@etcd", "instance"), "{{instance}} received"),
					},
					tells: "To and from the API servers. Much sent and little received is LISTs that the watch cache does not serve.",
					do:    "look for LISTs with resourceVersion unset and for API servers that restart.",
				},
			}},
			{"Database", []panel{
				{
					title: "Size against quota", unit: "percentunit", max: 1, warn: 0.8, bad: 0.95, moves: []string{"etcdQuota"},
					queries: []query{q(`instance:etcd_mvcc_db_total_size:quota_ratio{@irecord}`, "{{instance}}")},
					tells:   "At 100% etcd refuses all writes until an operator acts: no leases, so nodes turn NotReady next.",
					do:      "delete what is not needed, compact, defragment one member after another; raise the quota up to 8 GiB if the growth is sound.",
				}, {
					title: "Size of the file, and what of it is in use", unit: "bytes",
					queries: []query{
						q(`max by (instance) (etcd_mvcc_db_total_size_in_bytes{@etcd})`, "{{instance}} file"),
						q(`max by (instance) (etcd_mvcc_db_total_size_in_use_in_bytes{@etcd})`, "{{instance}} in use"),
					},
					tells: "The difference is what a defragmentation gives back.",
					do:    "a file twice what is in use: defragment. In use growing: see objects by resource in the API server's dashboard.",
				}, {
					title: "Writes refused", kind: "stat", unit: "bool_yes_no", w: 4, bad: 1, moves: []string{"etcdQuota"},
					queries: []query{q(`max(rate(grpc_server_handled_total{@etcd, grpc_service="etcdserverpb.KV", grpc_code="ResourceExhausted"}[@rate])) > bool 0`, "in this time")},
					calc:    "max",
					tells:   "Whether writes were refused in the range: under the NOSPACE alarm, which does not go away by itself, or of too many at once. etcd's gauge of alarms does not fall back to zero.",
					do:      "compact, defragment each member, delete the cause, then etcdctl alarm disarm.",
				}, {
					title: "Keys", kind: "stat", unit: "short", w: 4,
					queries: []query{q(`max(etcd_debugging_mvcc_keys_total{@etcd})`, "keys")},
					tells:   "Objects, leases and events of the whole cluster.",
					do:      "if it grows without bound, a client makes objects and never deletes them: see objects by resource.",
				}, {
					title: "What is done to the store", unit: "ops", w: 8,
					queries: []query{
						q(rate("etcd_mvcc_put_total", "@etcd"), "puts"), q(rate("etcd_mvcc_delete_total", "@etcd"), "deletes"),
						q(rate("etcd_mvcc_range_total", "@etcd"), "ranges"), q(rate("etcd_mvcc_txn_total", "@etcd"), "transactions"),
					},
					tells: "Over all members: with three, each write counts three times.",
					do:    "compare with the API server's requests by verb: ranges far above them are LISTs past the watch cache.",
				}, {
					title: "Watchers", unit: "short", w: 8,
					queries: []query{
						q(`sum by (instance) (etcd_debugging_mvcc_watcher_total{@etcd})`, "{{instance}}"),
						q(`sum by (instance) (etcd_debugging_mvcc_slow_watcher_total{@etcd})`, "{{instance}} behind"),
						q(`sum by (instance) (etcd_debugging_mvcc_pending_events_total{@etcd})`, "{{instance}} events that wait"),
					},
					tells: "API servers watch once per resource. Those that are behind get old events from disk.",
					do:    "watchers behind: an API server that does not keep up, mostly for want of CPU.",
				}, {
					title: "Requests p99", unit: "s", w: 8, log: true, warn: 0.1, moves: []string{"slowFsync", "networkDelay etcd", "pause etcd"},
					queries: []query{q(p99("etcd_server_request_duration_seconds", "@etcd", "type"), "{{type}}")},
					tells:   "Inside etcd, by kind of request. Txn is every write of a Kubernetes object.",
					do:      "Txn slow with a slow fsync: the disk. Txn slow alone: CPU, or round trips.",
				},
			}},
			processRow(jobEtcd, false),
		},
	}
}

// walFsync queries p99, p95 and median of each member: while only a few leases are
// written, one slow fsync sets the p99.
func walFsync() []query {
	const fsync = "etcd_disk_wal_fsync_duration_seconds"
	return []query{
		q(p99(fsync, "@etcd", "instance"), "{{instance}} p99"),
		q(quantile(0.95, fsync, "@etcd", "instance"), "{{instance}} p95"),
		q(quantile(0.5, fsync, "@etcd", "instance"), "{{instance}} p50"),
	}
}
