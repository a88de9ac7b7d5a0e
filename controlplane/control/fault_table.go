package control

import (
	"fmt"
	"time"
)

// The kinds of fault. The first group is for a bundled plane: real faults of real
// components. The second group is for simulated nodes.
const (
	FaultSlowFsync      = "slowFsync"
	FaultDiskContention = "diskContention"
	FaultNetworkDelay   = "networkDelay"
	FaultPartition      = "partition"
	FaultPause          = "pause"
	FaultKill           = "kill"
	FaultRestart        = "restart"
	FaultDescriptors    = "descriptorLimit"
	FaultDiskFull       = "diskFull"
	FaultWebhook        = "webhook"
	FaultService        = "service"
	FaultKeyRotation    = "keyRotation"
	FaultQuota          = "etcdQuota"
	FaultRestore        = "etcdRestore"
	FaultUpgrade        = "upgrade"
	FaultDowngrade      = "downgrade"

	NodeFailure        = "nodeFailure"
	NodeShutdown       = "nodeShutdown"
	NodeRecovery       = "nodeRecovery"
	NodeScaleUp        = "nodeScaleUp"
	InstancesVanish    = "instancesVanish"
	SlowKubelet        = "slowKubelet"
	KubeletUnreachable = "kubeletUnreachable"
)

// FaultTable describes each kind of fault: first the kinds for a control plane, then the kinds for simulated nodes.
func FaultTable() []FaultKind {
	return []FaultKind{
		{
			Name:  FaultSlowFsync,
			Short: "Delay fsync calls of etcd members",
			Long: `Delay fsync and fdatasync calls of etcd members. By default, only calls on files of the
write-ahead log are delayed (--files). Data stays as durable as before. The fault needs
Linux with seccomp, but not root.

Metrics: etcd_disk_wal_fsync_duration_seconds, and the latency of all writes. A slow
follower hurts less than a slow leader, because the other members form a quorum without
it.`,
			Example: `  controlplane fault slow-fsync --member etcd-0 --delay 25ms --for 1m
  controlplane fault slow-fsync --member etcd --delay 10ms --jitter 5ms --files all`,
			Takes: []string{"components", "for", "delay", "jitter", "files"}, Needs: []string{"components", "delay"}, Delays: "each call",
			On: []string{KindEtcd}, Process: ProcessAltered, PartOfEach: "the fsync of",
		},
		{
			Name:  FaultDiskContention,
			Short: "Run another process that writes and fsyncs on the disk",
			Long: `Run another process that writes and fsyncs repeatedly on the file system of etcd's data.
The setting etcd: {topology: external} imitates an etcd on its own machine. The process
then uses another disk: that of /dev/shm, $XDG_RUNTIME_DIR or $TMPDIR (the first one on
another device). The files are removed at the end.

The effect depends on the disk. Metrics: etcd_disk_wal_fsync_duration_seconds and
etcd_disk_backend_commit_duration_seconds.`,
			Example: `  controlplane fault disk-contention --for 1m
  controlplane fault disk-contention --writers 16 --size 4MiB --for 1m`,
			Takes: []string{"for", "writers", "size"},
			// The neighbour process needs 80 ms of CPU time to start, and more time on a busy machine. A run requests
			// the fault 40 ms early. If the start takes 140 ms, the neighbour then begins to write 100 ms late. At the
			// start of a phase, a run cannot request a fault early.
			Lead: 40 * time.Millisecond,
			Part: func(Fault) string { return "the disk" }, ReachesEtcd: true,
		},
		{
			Name:  FaultNetworkDelay,
			Short: "Delay the traffic on network links",
			Long: `Delay the traffic on the network links of a component. A round trip takes longer by
twice the delay.

` + linksLong + `

Metrics: etcd_network_peer_round_trip_time_seconds, and the latency of all writes. A
delay of more than about 0.5 s (half of etcd's election timeout) also causes leader
changes.`,
			Example: `  controlplane fault network-delay --component etcd-leader --delay 50ms --jitter 10ms --for 1m
  controlplane fault network-delay --component kube-apiserver-0 --peer etcd --delay 20ms --for 1m`,
			Takes: []string{"components", "peers", "for", "delay", "jitter"}, Needs: []string{"components", "delay"}, Delays: "data in each direction",
			On: []string{KindEtcd, KindAPIServer, KindMetricsServer}, Links: true, ReachesEtcd: true,
		},
		{
			Name:  FaultPartition,
			Short: "Cut network links",
			Long: `Cut the network links of a component. No data passes in either direction, and
connections hang, as behind a broken switch.

` + linksLong + `

If etcd's leader is cut off from the other members, they elect a new leader after the
election timeout. Metrics: etcd_server_leader_changes_seen_total and
etcd_server_has_leader.`,
			Example: `  controlplane fault partition --component etcd-leader --for 30s
  controlplane fault partition --component etcd-0 --peer etcd-1 --for 30s`,
			Takes: []string{"components", "peers", "for"}, Needs: []string{"components"},
			On: []string{KindEtcd, KindAPIServer, KindMetricsServer}, Links: true, ReachesEtcd: true, Isolates: true,
		},
		{
			Name:  FaultPause,
			Short: "Stop a process (SIGSTOP), and continue it at the end (SIGCONT)",
			Long: `Stop a process, and let it continue at the end. As on a host that hangs, connections to
the process stay open, but clients get no answers.`,
			Example: `  controlplane fault pause --component etcd-leader --for 10s
  controlplane fault pause --component kube-apiserver-0 --for 30s`,
			Takes: []string{"components", "for"}, Needs: []string{"components"},
			Process: ProcessStopped, Silences: true,
		},
		{
			Name:  FaultKill,
			Short: "Kill a process (SIGKILL) and start it again at the end",
			Long: `Kill a process, and start it again at the end, with the same ports and data. If the
etcd members lose their quorum, writes and consistent (linearizable) reads of etcd fail
until the end.`,
			Example: `  controlplane fault kill --component kube-scheduler-leader --for 30s
  controlplane fault kill --component etcd-0 --component etcd-1 --for 20s`,
			Takes: []string{"components", "for"}, Needs: []string{"components"},
			Process: ProcessEnded, Silences: true,
		},
		{
			Name:  FaultRestart,
			Short: "Terminate a process (SIGTERM) and start it again immediately",
			Long: `Terminate a process and start it again as soon as it has ended, as in a rolling update
of the control plane. Several components restart one after another, each when the previous
one serves again.

There is no --for: the fault ends when the last component has started.
'controlplane fault events' shows when each component is ready.`,
			Example: `  controlplane fault restart --component kube-apiserver-0
  controlplane fault restart --component etcd`,
			Takes: []string{"components"}, Needs: []string{"components"}, Momentary: true,
			Process: ProcessEnded, Silences: true,
		},
		{
			Name:  FaultDescriptors,
			Short: "Lower the limit on open files of a process",
			Long: `Lower the soft limit on open files of a process, and restore it at the end. Open files
stay open. The process does not accept new connections beyond the limit. They wait until
the limit is restored or the client gives up. Linux only.

Metrics: process_open_fds and process_max_fds. 'controlplane status' shows the number
of open files.`,
			Example: `  controlplane fault descriptor-limit --component kube-apiserver-0 --limit 256 --for 1m`,
			Takes:   []string{"components", "for", "limit"}, Needs: []string{"components", "limit"},
			Process: ProcessAltered, PartOfEach: "the descriptor limit of", Silences: true,
		},
		{
			Name:  FaultDiskFull,
			Short: "Prevent the files of an API server from growing, as on a full disk",
			Long: `Prevent the files of an API server from growing (a file size limit of 0), and restore
the limit at the end. Its audit log and its own log lose all new lines. Writes fail
with EFBIG, but on a real full disk with ENOSPC. Linux only.

Metric: apiserver_audit_error_total. With --audit-log-mode=blocking-strict, requests
fail unless the audit policy omits the stage RequestReceived (as with apiServer.audit:
metadata).`,
			Example: `  controlplane fault disk-full --component kube-apiserver --for 1m`,
			Takes:   []string{"components", "for"}, Needs: []string{"components"},
			On: []string{KindAPIServer}, Process: ProcessAltered, PartOfEach: "the disk of",
		},
		{
			Name:  FaultWebhook,
			Short: "Register an admission webhook that is slow or fails",
			Long: `Register a validating webhook that the API server calls for each creation of a
resource. The webhook waits before it allows the request (--delay), or answers with
status 500 (--fails). It is removed at the end.

The API server calls several validating webhooks in parallel, and mutating webhooks
one after another.

Metrics: apiserver_admission_webhook_admission_duration_seconds, and the latency or
errors of POST requests for the resource.`,
			Example: `  controlplane fault webhook --resource pods --delay 2s --for 1m
  controlplane fault webhook --resource deployments.apps --fails --ignore --for 1m
  controlplane fault webhook --resource pods --webhooks 2 --mutates --reinvoke --delay 100ms`,
			Takes: []string{"for", "delay", "jitter", "resource", "fails", "ignore", "timeout", "webhooks", "mutates", "reinvoke"}, Needs: []string{"resource"}, Delays: "each answer",
			Check: func(f Fault) (Problem, bool) {
				if f.Reinvoke && !f.Mutates {
					return Problem{"reinvoke", "API servers call only mutating webhooks again", "add mutates, or leave reinvoke out"}, true
				}
				return Problem{"delay", "a webhook without a delay or failures has no effect", "set delay or fails"}, f.Delay == 0 && !f.Fails
			},
			Part: func(f Fault) string {
				if f.Mutates {
					return "the mutating webhooks for " + f.Resource
				}
				return "the webhook for " + f.Resource
			},
		},
		{
			Name:  FaultService,
			Short: "Make a service slow, failing or throttled, for example a KMS plugin",
			Long: `Delay each answer of a service, or replace it with an error. The services are
kms-plugin, oidc-issuer, token-webhook, authorization-webhook, audit-webhook,
conversion-webhook, scheduler-extender and cloud-api. --component accepts the services
that the config contains.

With --throttle, the service refuses requests above this rate with status 429 and
Retry-After. When the fault ends, the service sends all delayed answers.

Caches can hide the effect for some time (docs/reference/services.md).`,
			Example: `  controlplane fault service --component token-webhook --delay 2s --for 1m
  controlplane fault service --component kms-plugin --fails --for 5m
  controlplane fault service --component cloud-api --throttle 5 --for 5m`,
			Takes: []string{"components", "for", "delay", "jitter", "fails", "throttle"}, Needs: []string{"components"}, Delays: "each answer",
			On: KindsOf(StageServices), Process: ProcessAltered, PartOfEach: "the responses of",
			Check: func(f Fault) (Problem, bool) {
				return Problem{"delay", "without a delay, failures or throttling, this fault has no effect", "set delay, fails or throttle"}, f.Delay == 0 && !f.Fails && f.Throttle == 0
			},
		},
		{
			Name:  FaultKeyRotation,
			Short: "Give a service a new key",
			Long: `Give kms-plugin or oidc-issuer a new key, if the config contains this service. API
servers notice a new key of kms-plugin within a minute, and then encrypt with it. When
an API server has read a new key of oidc-issuer, it refuses tokens signed with the old
key. During a run, the load generator then uses a new token.`,
			Example: `  controlplane fault key-rotation --component kms-plugin`,
			Takes:   []string{"components"}, Needs: []string{"components"}, Momentary: true,
			On: []string{KindKMSPlugin, KindOIDCIssuer}, Process: ProcessAltered, PartOfEach: "the keys of",
		},
		{
			Name:  FaultQuota,
			Short: "Run the etcd members with a small quota for their database",
			Long: `Restart the etcd members, one after another, with a small quota for their database.
The first write that exceeds the quota raises the alarm NOSPACE. From then on, etcd
refuses all writes that need space.

At the end, the members restart with their previous quota, the alarm is disarmed, and
the databases are compacted and defragmented. The fault takes some seconds per member
to begin and to end.

Metrics: etcd_mvcc_db_total_size_in_bytes and etcd_server_quota_backend_bytes.`,
			Example: `  controlplane fault etcd-quota --quota 16MiB --for 2m`,
			Takes:   []string{"for", "quota"}, Needs: []string{"quota"},
			OnAll: []string{KindEtcd}, Process: ProcessEnded, Silences: true,
		},
		{
			Name:  FaultRestore,
			Short: "Take a snapshot of etcd and restore the control plane from it",
			Long: `Rehearse a restore: take a snapshot of etcd, stop all components, create new data for
each member from the snapshot, and start all components. No requests are served for
some seconds. Writes after the snapshot are lost. 'controlplane etcd restore' does the
same with your own snapshot.`,
			Example: `  controlplane fault etcd-restore`,
			OnAll:   Kinds(), Momentary: true, Process: ProcessEnded, Whole: true, Silences: true,
		},
		{
			Name:  FaultUpgrade,
			Short: "Upgrade components to a newer version, one after another",
			Long: `Stop each component and start it with the program of a newer version of Kubernetes.
The order is upstream's: etcd members (the leader last), API servers, controller
manager, scheduler and cloud-controller-manager. Each component restarts when the
previous one serves again. An upgrade that upstream's version skew policy forbids is
refused.

The newest version is in the program controlplane. Each older version has its own
program, for example controlplane-1.36, next to controlplane or on PATH
(docs/reference/versions.md).

If a component does not serve with the new program, it starts with the old program
again, and the upgrade ends. Components that were upgraded before stay upgraded.
'controlplane fault downgrade' undoes an upgrade.`,
			Example: `  controlplane fault upgrade --to 1.37
  controlplane fault upgrade --to 1.37 --component kube-apiserver-0`,
			Takes: []string{"components", "to"}, Needs: []string{"to"}, Momentary: true,
			On: VersionedKinds(), AllByDefault: true, Process: ProcessEnded, Silences: true,
			Part: versionsPart, Check: noRoles,
		},
		{
			Name:  FaultDowngrade,
			Short: "Downgrade components to an older version, one after another",
			Long: `Like 'controlplane fault upgrade', but to an older version and in the reverse order.
Before the first etcd member restarts, the control plane enables the downgrade as
'etcdctl downgrade enable' does, and waits until etcd's data has the older format.`,
			Example: `  controlplane fault downgrade --to 1.36`,
			Takes:   []string{"components", "to"}, Needs: []string{"to"}, Momentary: true,
			On: VersionedKinds(), AllByDefault: true, Process: ProcessEnded, Silences: true,
			Part: versionsPart, Check: noRoles,
		},
		{
			Name: NodeFailure, Short: "Silence a fraction of the nodes at once: their heartbeats and watches stop, and their connections drop",
			Takes: []string{"fraction", "outOfService"}, Needs: []string{"fraction"},
			OfNodes: true, SilencesNodes: true,
		},
		{
			Name: NodeShutdown, Short: "Shut down a fraction of the nodes gracefully: they become not Ready, end their pods within the grace period, then fall silent",
			Takes: []string{"fraction"}, Needs: []string{"fraction"},
			OfNodes: true, SilencesNodes: true, Announced: true,
		},
		{
			Name: NodeRecovery, Short: "Bring all nodes back",
			OfNodes: true, Recovers: true,
		},
		{
			Name: InstancesVanish, Short: "Remove a fraction of the nodes and their instances: the nodes fall silent, and the simulated cloud no longer knows their instances",
			Takes: []string{"fraction"}, Needs: []string{"fraction"},
			OfNodes: true, OfCloud: true, SilencesNodes: true,
		},
		{
			Name: NodeScaleUp, Short: "Register the nodes that `nodes.later` held back, at the rate `nodes.registerRate`",
			OfNodes: true, Adds: true,
		},
		{
			Name: SlowKubelet, Short: "Delay all writes of a fraction of the nodes, including heartbeats",
			Takes: []string{"fraction", "delay"}, Needs: []string{"fraction", "delay"},
			OfNodes: true,
		},
		{
			Name: KubeletUnreachable, Short: "Make a fraction of the kubelets unreachable for the API server: requests such as logs and exec hang, but heartbeats continue",
			Takes: []string{"fraction"}, Needs: []string{"fraction"},
			OfNodes: true,
		},
	}
}

const linksLong = `The links are the connections between etcd members, from API servers to etcd members,
and from API servers to metrics-server (one link for all API servers). Without --peer,
the fault affects all links of the component. The control plane must have the setting
networkFaults: on, which is the default with several etcd members.`

// versionsPart returns the part that upgrades and downgrades claim exclusively. Only one of them runs at a time,
// because the supervisor checks each against the versions that the previous one has set.
func versionsPart(Fault) string { return "the versions of components" }

func noRoles(f Fault) (Problem, bool) {
	for _, text := range f.Components {
		if s, ok := ParseSelector(text); ok && s.Role != "" {
			return Problem{"components", fmt.Sprintf("%q is ambiguous, because the leader may change while components restart", text), fmt.Sprintf("name the component, for example %q, or write %q for all", ComponentName(s.Kind, 0), s.Kind)}, true
		}
	}
	return Problem{}, false
}
