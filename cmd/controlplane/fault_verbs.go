package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/controlplane/control"
)

func faultVerbs() []faultVerb {
	return []faultVerb{
		slowFsyncVerb(), diskContentionVerb(), networkDelayVerb(), partitionVerb(), pauseVerb(), killVerb(), restartVerb(),
		descriptorLimitVerb(), webhookVerb(), etcdQuotaVerb(), etcdRestoreVerb(),
	}
}

const componentsUsage = "the component's `name`, its kind for all of them, or kind-leader, kind-follower; can be repeated"

func componentFlag(cmd *cobra.Command, f *control.Fault) {
	cmd.Flags().StringSliceVar(&f.Components, "component", nil, componentsUsage)
}

func delayFlags(cmd *cobra.Command, f *control.Fault, what string) {
	cmd.Flags().DurationVar(&f.Delay, "delay", 0, "`time` that "+what+" waits, as 25ms")
	cmd.Flags().DurationVar(&f.Jitter, "jitter", 0, "`time` that is added to or taken from the delay, evenly drawn up to so much, as 5ms")
	cmd.Flags().Int64Var(&f.Seed, "seed", 0, "`number` that the jitter is drawn from: one number draws one sequence")
}

func slowFsyncVerb() faultVerb {
	return faultVerb{
		use: "slow-fsync", kind: control.FaultSlowFsync, components: "member",
		short: "Make fsync of etcd members slow, as a throttled disk does",
		long: `Make each fsync and fdatasync of etcd members wait before it is done. The data
is as durable as ever. It needs Linux with seccomp; no root.

It shows in etcd_disk_wal_fsync_duration_seconds, then in the latency of all
writes. A slow member that follows hurts less than the leader: a quorum of the
others is enough.`,
		example: `  controlplane fault slow-fsync --member etcd-0 --delay 25ms --for 1m
  controlplane fault slow-fsync --member etcd --delay 10ms --jitter 5ms --files all`,
		flags: func(cmd *cobra.Command, f *control.Fault) {
			cmd.Flags().StringSliceVar(&f.Components, "member", nil, "the member's `name`, etcd for all, etcd-leader or etcd-follower; can be repeated")
			delayFlags(cmd, f, "each call")
			cmd.Flags().StringVar(&f.Files, "files", "", "`wal` for the write-ahead log (the default), or all for the database and snapshots too")
		},
	}
}

func diskContentionVerb() faultVerb {
	return faultVerb{
		use: "disk-contention", kind: control.FaultDiskContention,
		short: "Have a neighbour write and fsync on the disk",
		long: `Run a neighbour that writes and fsyncs, over and over: on the file system of
etcd's data if etcd is stacked, on another one if it is external. What it writes
is removed at the end.

How much it hurts depends on the disk; see etcd_disk_wal_fsync_duration_seconds
and etcd_disk_backend_commit_duration_seconds.`,
		example: `  controlplane fault disk-contention --for 1m
  controlplane fault disk-contention --writers 16 --size 4MiB --for 1m`,
		flags: func(cmd *cobra.Command, f *control.Fault) {
			cmd.Flags().IntVar(&f.Writers, "writers", 0, "`number` of writers at the same time, 1 to 64 (default 4)")
			cmd.Flags().Var(byteCount{&f.Size}, "size", "`size` that a writer writes before it fsyncs, 4KiB to 1GiB (default 1MiB)")
		},
	}
}

const linksLong = `The links are those between etcd members and from API servers to members; the
plane must have been started with networkFaults: on, as it is with several
members. Without --peer all links of the component are meant.`

func linkFlags(cmd *cobra.Command, f *control.Fault) {
	cmd.Flags().StringSliceVar(&f.Components, "component", nil, componentsUsage)
	cmd.Flags().StringSliceVar(&f.Peers, "peer", nil, "the other end of the links, `name` or kind (default: all that there are); can be repeated")
}

func networkDelayVerb() faultVerb {
	return faultVerb{
		use: "network-delay", kind: control.FaultNetworkDelay, components: "component",
		short: "Delay what goes over a component's links",
		long: `Delay data on the links of a component, in each direction, so that a round trip
takes twice the delay longer.

` + linksLong + `

It shows in etcd_network_peer_round_trip_time_seconds and in the latency of all
writes; from about half of etcd's election timeout (1 s) on, in leader changes.`,
		example: `  controlplane fault network-delay --component etcd-leader --delay 50ms --jitter 10ms --for 1m
  controlplane fault network-delay --component kube-apiserver-0 --peer etcd --delay 20ms --for 1m`,
		flags: func(cmd *cobra.Command, f *control.Fault) {
			linkFlags(cmd, f)
			delayFlags(cmd, f, "data in each direction")
		},
	}
}

func partitionVerb() faultVerb {
	return faultVerb{
		use: "partition", kind: control.FaultPartition, components: "component",
		short: "Let nothing through a component's links",
		long: `Cut the links of a component: nothing comes through in either direction, and
connections hang rather than fail, as behind a switch that is gone.

` + linksLong + `

A leader that is cut from the other members loses its role after an election
timeout; see etcd_server_leader_changes_seen_total and etcd_server_has_leader.`,
		example: `  controlplane fault partition --component etcd-leader --for 30s
  controlplane fault partition --component etcd-0 --peer etcd-1 --for 30s`,
		flags: linkFlags,
	}
}

func pauseVerb() faultVerb {
	return faultVerb{
		use: "pause", kind: control.FaultPause, components: "component",
		short: "Stop a process for a time (SIGSTOP, then SIGCONT)",
		long: `Stop a process where it is and let it go on later, as a host that hangs: its
connections stay open and nobody answers on them.`,
		example: `  controlplane fault pause --component etcd-leader --for 10s
  controlplane fault pause --component kube-apiserver-0 --for 30s`,
		flags: componentFlag,
	}
}

func killVerb() faultVerb {
	return faultVerb{
		use: "kill", kind: control.FaultKill, components: "component",
		short: "Kill a process (SIGKILL) and start it anew at the end",
		long: `Kill a process. At the end of the fault it is started anew, with the same ports
and data. A kill of all etcd members but one stops all writes until then.`,
		example: `  controlplane fault kill --component kube-scheduler-leader --for 30s
  controlplane fault kill --component etcd-0 --component etcd-1 --for 20s`,
		flags: componentFlag,
	}
}

func restartVerb() faultVerb {
	return faultVerb{
		use: "restart", kind: control.FaultRestart, components: "component",
		short: "End a process in order (SIGTERM) and start it anew at once",
		long: `End a process in order and start it anew as soon as it is gone: a rollout of the
control plane. Of several, as of a kind, each has its turn when the one before it
serves again. The fault ends by itself when the last has started again, so it has
no length; fault events tells when it is ready.`,
		example: `  controlplane fault restart --component kube-apiserver-0
  controlplane fault restart --component etcd`,
		flags: componentFlag,
	}
}

func descriptorLimitVerb() faultVerb {
	return faultVerb{
		use: "descriptor-limit", kind: control.FaultDescriptors, components: "component",
		short: "Lower a process's limit of open files",
		long: `Lower a process's soft limit of open files, at once, and put it back at the end.
What is open stays open; every new connection beyond the limit waits unaccepted
until its client gives up. Linux only.

See process_open_fds and process_max_fds. status shows how many are open.`,
		example: `  controlplane fault descriptor-limit --component kube-apiserver-0 --limit 256 --for 1m`,
		flags: func(cmd *cobra.Command, f *control.Fault) {
			componentFlag(cmd, f)
			cmd.Flags().Uint64Var(&f.Limit, "limit", 0, "`number` of open files, 1 to 1048576")
		},
	}
}

func webhookVerb() faultVerb {
	return faultVerb{
		use: "webhook", kind: control.FaultWebhook,
		short: "Register an admission webhook that is slow or fails",
		long: `Register a validating webhook that is asked about each creation of a resource and
waits before it allows it, or answers 500. It is removed at the end.

It shows in apiserver_admission_webhook_admission_duration_seconds and in the
latency, or the errors, of POSTs of the resource.`,
		example: `  controlplane fault webhook --resource pods --delay 2s --for 1m
  controlplane fault webhook --resource deployments.apps --fails --ignore --for 1m`,
		flags: func(cmd *cobra.Command, f *control.Fault) {
			cmd.Flags().StringVar(&f.Resource, "resource", "", "`resource` whose creation it is asked about, plural, as pods or deployments.apps")
			delayFlags(cmd, f, "each answer")
			cmd.Flags().BoolVar(&f.Fails, "fails", false, "answer 500, after the delay if there is one")
			cmd.Flags().BoolVar(&f.Ignore, "ignore", false, "failurePolicy Ignore: what gets no answer is allowed (default: Fail)")
			cmd.Flags().Var(wholeSeconds{&f.TimeoutSeconds}, "timeout", "the API server's patience in whole `seconds`, 1s to 30s (default: upstream's 10s)")
		},
	}
}

func etcdQuotaVerb() faultVerb {
	return faultVerb{
		use: "etcd-quota", kind: control.FaultQuota,
		short: "Run the etcd members with a small backend quota",
		long: `Restart the etcd members, one after another, with a small quota of their
database. The write that finds it used up raises the NOSPACE alarm; from then on
etcd refuses all that needs space.

At the end the members are restarted with the quota that they had, the alarm is
disarmed, revisions are compacted and the databases defragmented: what a person
on call does. Beginning and ending take some seconds for each member.

See etcd_mvcc_db_total_size_in_bytes and etcd_server_quota_backend_bytes.`,
		example: `  controlplane fault etcd-quota --quota 16MiB --for 2m`,
		flags: func(cmd *cobra.Command, f *control.Fault) {
			cmd.Flags().Var(byteCount{&f.Quota}, "quota", "`size` of the quota, 1MiB to 8GiB")
		},
	}
}

func etcdRestoreVerb() faultVerb {
	return faultVerb{
		use: "etcd-restore", kind: control.FaultRestore,
		short: "Take a snapshot of etcd and take the plane back to it",
		long: `Rehearse a restore: take a snapshot of etcd, stop everything, make fresh data of
the snapshot for each member and start everything again. It takes some seconds,
in which nothing is served; what is written while the snapshot is unpacked is
gone. controlplane etcd restore does the same with a snapshot of yours.`,
		example: `  controlplane fault etcd-restore`,
		flags:   func(*cobra.Command, *control.Fault) {},
	}
}

// wholeSeconds is a flag's value in seconds: "5s".
type wholeSeconds struct{ to *int }

// Type is what help calls the value.
func (wholeSeconds) Type() string { return "seconds" }

// String is the value as it is written.
func (s wholeSeconds) String() string {
	if s.to == nil || *s.to == 0 {
		return ""
	}
	return strconv.Itoa(*s.to) + "s"
}

// Set reads the value.
func (s wholeSeconds) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil {
		return errors.New("is no time (write it as 5s)")
	}
	if d <= 0 || d%time.Second != 0 {
		return fmt.Errorf("%s is not of whole seconds", d)
	}
	*s.to = int(d / time.Second)
	return nil
}
