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
			Short: "Make fsync of etcd members slow, as a throttled disk does",
			Long: `Delay each fsync and fdatasync of etcd members. Data stays as durable as before.
It needs Linux with seccomp, but not root.

It shows in etcd_disk_wal_fsync_duration_seconds, then in the latency of all
writes. A slow follower hurts less than a slow leader, because a quorum of the
other members is enough.`,
			Example: `  controlplane fault slow-fsync --member etcd-0 --delay 25ms --for 1m
  controlplane fault slow-fsync --member etcd --delay 10ms --jitter 5ms --files all`,
			Takes: []string{"components", "for", "delay", "jitter", "files"}, Needs: []string{"components", "delay"}, Delays: "each call",
			On: []string{KindEtcd}, Process: ProcessAltered, PartOfEach: "the fsync of",
		},
		{
			Name:  FaultDiskContention,
			Short: "Run a neighbour process that writes and fsyncs on the disk",
			Long: `Run a neighbour process that writes and fsyncs repeatedly: on the file system
of etcd's data if etcd is stacked, on a different one if etcd is external. Its
files are removed at the end.

How much it hurts depends on the disk; see etcd_disk_wal_fsync_duration_seconds
and etcd_disk_backend_commit_duration_seconds.`,
			Example: `  controlplane fault disk-contention --for 1m
  controlplane fault disk-contention --writers 16 --size 4MiB --for 1m`,
			Takes: []string{"for", "writers", "size"},
			// The neighbour process needs 80 ms of CPU time to start, so a run requests the fault 40 ms early. The
			// neighbour then begins to write a little early on a quiet machine, and 100 ms late if the start takes 140 ms.
			// A fault at the start of a phase cannot be requested early.
			Lead: 40 * time.Millisecond,
			Part: func(Fault) string { return "the disk" }, ReachesEtcd: true,
		},
		{
			Name:  FaultNetworkDelay,
			Short: "Delay data on a component's links",
			Long: `Delay data on the links of a component in each direction, so that a round trip
takes longer by twice the delay.

` + linksLong + `

It shows in etcd_network_peer_round_trip_time_seconds and in the latency of all
writes. A delay of more than about half of etcd's election timeout (1 s) also causes
leader changes.`,
			Example: `  controlplane fault network-delay --component etcd-leader --delay 50ms --jitter 10ms --for 1m
  controlplane fault network-delay --component kube-apiserver-0 --peer etcd --delay 20ms --for 1m`,
			Takes: []string{"components", "peers", "for", "delay", "jitter"}, Needs: []string{"components", "delay"}, Delays: "data in each direction",
			On: []string{KindEtcd, KindAPIServer, KindMetricsServer}, Links: true, ReachesEtcd: true,
		},
		{
			Name:  FaultPartition,
			Short: "Cut a component's links",
			Long: `Cut the links of a component: no data passes in either direction, and connections
hang instead of failing, as behind a broken switch.

` + linksLong + `

If the leader is cut off from the other members, they elect a new one after an election
timeout; see etcd_server_leader_changes_seen_total and etcd_server_has_leader.`,
			Example: `  controlplane fault partition --component etcd-leader --for 30s
  controlplane fault partition --component etcd-0 --peer etcd-1 --for 30s`,
			Takes: []string{"components", "peers", "for"}, Needs: []string{"components"},
			On: []string{KindEtcd, KindAPIServer, KindMetricsServer}, Links: true, ReachesEtcd: true, Isolates: true,
		},
		{
			Name:  FaultPause,
			Short: "Stop a process for a time (SIGSTOP, then SIGCONT)",
			Long: `Stop a process and let it continue later, like a host that hangs: its connections
stay open, but nothing answers.`,
			Example: `  controlplane fault pause --component etcd-leader --for 10s
  controlplane fault pause --component kube-apiserver-0 --for 30s`,
			Takes: []string{"components", "for"}, Needs: []string{"components"},
			Process: ProcessStopped, Silences: true,
		},
		{
			Name:  FaultKill,
			Short: "Kill a process (SIGKILL) and start it again at the end",
			Long: `Kill a process. At the end of the fault it is started again, with the same ports
and data. If all etcd members except one are killed, all writes stop until then.`,
			Example: `  controlplane fault kill --component kube-scheduler-leader --for 30s
  controlplane fault kill --component etcd-0 --component etcd-1 --for 20s`,
			Takes: []string{"components", "for"}, Needs: []string{"components"},
			Process: ProcessEnded, Silences: true,
		},
		{
			Name:  FaultRestart,
			Short: "Terminate a process (SIGTERM) and start it again immediately",
			Long: `Terminate a process and start it again as soon as it has ended, as in a rollout of
the control plane. Several components, such as all of a kind, are restarted one after
another: each waits until the previous one serves again. The fault ends when the last
component has started again, so there is no --for; 'fault events' shows when each is
ready.`,
			Example: `  controlplane fault restart --component kube-apiserver-0
  controlplane fault restart --component etcd`,
			Takes: []string{"components"}, Needs: []string{"components"}, Momentary: true,
			Process: ProcessEnded, Silences: true,
		},
		{
			Name:  FaultDescriptors,
			Short: "Lower a process's limit of open files",
			Long: `Lower a process's soft limit of open files immediately, and restore it at the end.
Open files stay open. A new connection beyond the limit is not accepted: it waits
until its client gives up. Linux only.

See process_open_fds and process_max_fds. 'controlplane status' shows how many files are open.`,
			Example: `  controlplane fault descriptor-limit --component kube-apiserver-0 --limit 256 --for 1m`,
			Takes:   []string{"components", "for", "limit"}, Needs: []string{"components", "limit"},
			Process: ProcessAltered, PartOfEach: "the descriptor limit of", Silences: true,
		},
		{
			Name:  FaultDiskFull,
			Short: "Prevent the files of an API server from growing, as on a full disk",
			Long: `Prevent the files of an API server from growing (a limit of 0 on the size of its
files), and restore the limit at the end. Until then, its audit log and its own log
lose all new lines. Writes fail with EFBIG (on a full disk, with ENOSPC). Linux only.

See apiserver_audit_error_total. With --audit-log-mode=blocking-strict, a request
fails if its RequestReceived event cannot be written, unless the audit policy omits
this stage, as the policy of apiServer.audit: metadata does.`,
			Example: `  controlplane fault disk-full --component kube-apiserver --for 1m`,
			Takes:   []string{"components", "for"}, Needs: []string{"components"},
			On: []string{KindAPIServer}, Process: ProcessAltered, PartOfEach: "the disk of",
		},
		{
			Name:  FaultWebhook,
			Short: "Register an admission webhook that is slow or fails",
			Long: `Register a validating webhook that the API server calls for each creation of a
resource. The webhook waits before it allows the request, or answers 500. Several
webhooks are called at the same time; mutating webhooks are called one after another,
and each adds an annotation. The webhooks are removed at the end of the fault.

It shows in apiserver_admission_webhook_admission_duration_seconds and in the
latency, or the errors, of POSTs of the resource.`,
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
			Short: "Slow a service that components call, or make it fail or throttle",
			Long: `Delay each answer of a service, or replace it with an error. The services are
kms-plugin, oidc-issuer, token-webhook, authorization-webhook, audit-webhook,
conversion-webhook, scheduler-extender and cloud-api, if the plane's configuration
has them. With --throttle the service answers this number of requests a second, and
refuses the rest with status 429 and Retry-After. Delayed answers are sent when the
fault ends.

Caches can hide the effect for a while: see the docs' page on services.`,
			Example: `  controlplane fault service --component token-webhook --delay 2s --for 1m
  controlplane fault service --component kms-plugin --fails --for 5m
  controlplane fault service --component cloud-api --throttle 5 --for 5m`,
			Takes: []string{"components", "for", "delay", "jitter", "fails", "throttle"}, Needs: []string{"components"}, Delays: "each answer",
			On: KindsOf(StageServices), Process: ProcessAltered, PartOfEach: "the answers of",
			Check: func(f Fault) (Problem, bool) {
				return Problem{"delay", "without a delay, failures or throttling, this fault has no effect", "set delay, fails or throttle"}, f.Delay == 0 && !f.Fails && f.Throttle == 0
			},
		},
		{
			Name:  FaultKeyRotation,
			Short: "Give a service a new key",
			Long: `Give kms-plugin or oidc-issuer a new key. API servers encrypt with the new key of
kms-plugin as soon as they have noticed it (within a minute). Once an API server has
read the new key of oidc-issuer, it refuses tokens signed with the old key. A run's
load gets a new token.`,
			Example: `  controlplane fault key-rotation --component kms-plugin`,
			Takes:   []string{"components"}, Needs: []string{"components"}, Momentary: true,
			On: []string{KindKMSPlugin, KindOIDCIssuer}, Process: ProcessAltered, PartOfEach: "the keys of",
		},
		{
			Name:  FaultQuota,
			Short: "Run the etcd members with a small backend quota",
			Long: `Restart the etcd members, one after another, with a small quota of their
database. The write that exceeds it raises the NOSPACE alarm; from then on etcd
refuses all requests that need space.

At the end the members are restarted with their previous quota, the alarm is
disarmed, revisions are compacted and the databases are defragmented, as an operator
would do. The begin and the end of the fault take some seconds per member.

See etcd_mvcc_db_total_size_in_bytes and etcd_server_quota_backend_bytes.`,
			Example: `  controlplane fault etcd-quota --quota 16MiB --for 2m`,
			Takes:   []string{"for", "quota"}, Needs: []string{"quota"},
			OnAll: []string{KindEtcd}, Process: ProcessEnded, Silences: true,
		},
		{
			Name:  FaultRestore,
			Short: "Take a snapshot of etcd and restore the plane from it",
			Long: `Rehearse a restore: take a snapshot of etcd, stop all components, create new data
from the snapshot for each member, and start all components again. For some seconds
no requests are served. Writes made while the snapshot is unpacked are lost.
controlplane etcd restore does the same with your own snapshot.`,
			Example: `  controlplane fault etcd-restore`,
			OnAll:   Kinds(), Momentary: true, Process: ProcessEnded, Whole: true, Silences: true,
		},
		{
			Name:  FaultUpgrade,
			Short: "Start components with the programs of a newer version, one after another",
			Long: `Terminate each component and start it with the program of a newer version of
Kubernetes, in upstream's order: etcd (member by member, the leader last), then API
servers, controller manager, scheduler and cloud-controller-manager. Each is restarted
when the previous one serves again. A move that upstream's version skew policy forbids
is refused. The program is controlplane-VERSION next to controlplane; 'make
controlplane VERSION=1.36' builds it.

If a component does not serve with the new program, it is started with the old program
again, and the remaining components are not upgraded. To undo an upgrade, use 'fault
downgrade'.`,
			Example: `  controlplane fault upgrade --to 1.37
  controlplane fault upgrade --to 1.37 --component kube-apiserver-0`,
			Takes: []string{"components", "to"}, Needs: []string{"to"}, Momentary: true,
			On: VersionedKinds(), AllByDefault: true, Process: ProcessEnded, Silences: true,
			Part: versionsPart, Check: noRoles,
		},
		{
			Name:  FaultDowngrade,
			Short: "Start components with the programs of an older version, one after another",
			Long: `Like upgrade, but to an older version and in the reverse order. Before the first etcd
member is downgraded, the command runs etcdctl downgrade enable, and etcd lowers the
storage version of its data.`,
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
			Name: NodeScaleUp, Short: "Register nodes.later further nodes at the rate nodes.registerRate",
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

const linksLong = `A component's links are its connections to other components: between etcd members,
and from API servers to members and to metrics-server (all API servers share that
link). The fault requires a plane that was started with networkFaults: on, the default
with several members. Without --peer all links of the component are affected.`

// versionsPart returns the part that upgrades and downgrades claim exclusively. Only one of them runs at a time, because
// each is checked against the versions that the previous one has set.
func versionsPart(Fault) string { return "the versions of components" }

func noRoles(f Fault) (Problem, bool) {
	for _, text := range f.Components {
		if s, ok := ParseSelector(text); ok && s.Role != "" {
			return Problem{"components", fmt.Sprintf("%q is ambiguous, because the leader may change while components restart", text), fmt.Sprintf("name the component, for example %q, or write %q for all", ComponentName(s.Kind, 0), s.Kind)}, true
		}
	}
	return Problem{}, false
}
