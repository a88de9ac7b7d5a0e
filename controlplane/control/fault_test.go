package control_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

func TestSelectors(t *testing.T) {
	tests := []struct {
		text string
		want control.Selector
		ok   bool
	}{
		{"etcd", control.Selector{Kind: control.KindEtcd}, true},
		{"etcd-2", control.Selector{Kind: control.KindEtcd, Name: "etcd-2", Index: 2}, true},
		{"etcd-leader", control.Selector{Kind: control.KindEtcd, Role: control.RoleLeader}, true},
		{"kube-controller-manager-follower", control.Selector{Kind: control.KindControllerManager, Role: control.RoleFollower}, true},
		{"kube-controller-manager-10", control.Selector{Kind: control.KindControllerManager, Name: "kube-controller-manager-10", Index: 10}, true},
		{text: "kube-apiserver-leader"},
		{text: "etcd-"}, {text: "etcd-02"}, {text: "etcd--1"}, {text: "etcd-all"}, {text: "apiserver"}, {text: ""},
	}
	for _, test := range tests {
		got, ok := control.ParseSelector(test.text)
		if ok != test.ok || ok && got != test.want {
			t.Errorf("ParseSelector(%q) = %+v, %v; want %+v, %v", test.text, got, ok, test.want, test.ok)
		}
	}
}

// etcd0 returns a fault of a kind on etcd-0.
func etcd0(kind string) control.Fault {
	return control.Fault{Kind: kind, Components: []string{"etcd-0"}}
}

func TestFaultProblems(t *testing.T) {
	with := func(f control.Fault, edit func(*control.Fault)) control.Fault {
		edit(&f)
		return f
	}
	delayed := func(kind string) control.Fault {
		return with(etcd0(kind), func(f *control.Fault) { f.Delay = 25 * time.Millisecond })
	}
	tests := []struct {
		name  string
		fault control.Fault
		want  []string // the beginning of each problem
	}{
		{"no kind", control.Fault{}, []string{`kind: unknown kind of fault "" (slowFsync, `}},
		{"a slow fsync", delayed(control.FaultSlowFsync), nil},
		{"only a kind", control.Fault{Kind: control.FaultSlowFsync}, []string{
			`components: slowFsync requires this field (for example "etcd-0", "etcd-leader", or "etcd" for all members)`,
			`delay: slowFsync requires this field (for example "25ms")`,
		}},
		{"fsync of an API server", with(delayed(control.FaultSlowFsync), func(f *control.Fault) { f.Components = []string{"kube-apiserver-0"} }),
			[]string{"components: slowFsync cannot be applied to kube-apiserver-0 (for etcd only)"}},
		{"more jitter than delay", with(delayed(control.FaultSlowFsync), func(f *control.Fault) { f.Jitter = time.Second }), []string{"jitter: 1s is out of bounds (at most the delay"}},
		{"other files", with(delayed(control.FaultSlowFsync), func(f *control.Fault) { f.Files = "snapshots" }), []string{`files: unknown value "snapshots" (wal or all)`}},
		{"a field of another kind", with(etcd0(control.FaultKill), func(f *control.Fault) { f.Delay = time.Second }), []string{"delay: kill does not have this field (its fields are components, for)"}},
		{"a restart", etcd0(control.FaultRestart), nil},
		{"a long restart", with(etcd0(control.FaultRestart), func(f *control.Fault) { f.For = time.Second }), []string{"for: restart does not have this field ("}},
		{"a negative length", with(etcd0(control.FaultPause), func(f *control.Fault) { f.For = -time.Second }), []string{"for: -1s is out of bounds"}},
		{"a leader among equals", control.Fault{Kind: control.FaultPause, Components: []string{"kube-apiserver-leader"}}, []string{`components: "kube-apiserver-leader": kube-apiserver has no leader (name one component, for example`}},
		{"a follower and another", control.Fault{Kind: control.FaultKill, Components: []string{"etcd-follower", "etcd-follower"}}, []string{`components: "etcd-follower" is listed twice (name each component once`}},
		{"a component by another name", control.Fault{Kind: control.FaultPause, Components: []string{"scheduler"}}, []string{`components: unknown component "scheduler" (a name such as "etcd-0"`}},
		{"a link of the scheduler", with(delayed(control.FaultNetworkDelay), func(f *control.Fault) { f.Peers = []string{"kube-scheduler"} }),
			[]string{"peers: networkDelay cannot be applied to kube-scheduler (for etcd and kube-apiserver and metrics-server only)"}},
		{"a link by microseconds", with(etcd0(control.FaultNetworkDelay), func(f *control.Fault) { f.Delay = 1500 * time.Microsecond }), nil},
		{"disk contention", control.Fault{Kind: control.FaultDiskContention}, nil},
		{"tiny writes by many", control.Fault{Kind: control.FaultDiskContention, Writers: 65, Size: 1}, []string{"writers: 65 is out of bounds", "size: 1 bytes is out of bounds"}},
		{"no limit", etcd0(control.FaultDescriptors), []string{"limit: descriptorLimit requires this field (a number of open files, for example 1024)"}},
		{"a webhook", control.Fault{Kind: control.FaultWebhook, Resource: "deployments.apps", Fails: true}, nil},
		{"a webhook that does nothing", control.Fault{Kind: control.FaultWebhook, Resource: "pods"}, []string{"delay: a webhook without a delay or failures has no effect (set delay or fails)"}},
		{"a webhook on all", control.Fault{Kind: control.FaultWebhook, Resource: "*", Fails: true, TimeoutSeconds: 31}, []string{`resource: "*" is not a resource`, "timeout: 31 is out of bounds (from 1 to 30 seconds)"}},
		{"a quota", control.Fault{Kind: control.FaultQuota, Quota: 16 << 20}, nil},
		{"a quota too small for etcd", control.Fault{Kind: control.FaultQuota, Quota: 4096}, []string{"quota: 4096 bytes is out of bounds (from 1MiB to 8GiB)"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { expectProblems(t, test.fault.Problems(), test.want) })
	}
}

func TestFaultProblemsOnAPlane(t *testing.T) {
	small := control.Config{}
	large := control.Config{Etcd: control.Etcd{Members: 3}, Scheduler: control.Scheduler{Replicas: 2}}
	alone := control.Config{NetworkFaults: control.NetworkFaultsOn}
	twice := control.Config{NetworkFaults: control.NetworkFaultsOn, APIServer: control.APIServer{Replicas: 2}}
	cut := etcd0(control.FaultPartition)
	link := func(from, to string) control.Fault {
		return control.Fault{Kind: control.FaultPartition, Components: []string{from}, Peers: []string{to}}
	}
	follower := control.Fault{Kind: control.FaultPause, Components: []string{"kube-scheduler-follower"}}
	tests := []struct {
		name  string
		fault control.Fault
		on    control.Config
		want  []string
	}{
		{"a member of three", control.Fault{Kind: control.FaultKill, Components: []string{"etcd-2"}}, large, nil},
		{"a member too many", control.Fault{Kind: control.FaultKill, Components: []string{"etcd-3"}}, large, []string{"components: there is no etcd-3 (there is etcd-0 to etcd-2)"}},
		{"a second member of one", control.Fault{Kind: control.FaultKill, Components: []string{"etcd-1"}}, small, []string{"components: there is no etcd-1 (there is etcd-0)"}},
		{"a follower", follower, large, nil},
		{"a follower of a single scheduler", follower, small, []string{"components: there is no kube-scheduler-follower (the only kube-scheduler, kube-scheduler-0, is the leader)"}},
		{"a service that is not there", control.Fault{Kind: control.FaultService, Components: []string{"kms-plugin"}, Fails: true}, small, []string{"components: this control plane has no kms-plugin (the setting apiServer.encryption adds one)"}},
		{"a service", control.Fault{Kind: control.FaultService, Components: []string{"kms-plugin-1"}, Fails: true}, control.Config{APIServer: control.APIServer{Replicas: 2, Encryption: control.EncryptionKMS}}, nil},
		{"no service", control.Fault{Kind: control.FaultService, Components: []string{"etcd-0"}, Fails: true}, small, []string{"components: service cannot be applied to etcd-0"}},
		{"a service that does its work", control.Fault{Kind: control.FaultService, Components: []string{"kms-plugin-0"}}, small, []string{"delay: without a delay, failures or throttling"}},
		{"links", cut, large, nil},
		{"no links", cut, small, []string{"kind: partition requires links that can be delayed and cut, which this control plane does not have (start it with networkFaults: on)"}},
		{"a member and itself", link("etcd-0", "etcd-0"), large, []string{"peers: there is no link between etcd-0 and etcd-0"}},
		{"a member and all of it", link("etcd-0", "etcd"), large, nil},
		{"the leader and itself", link("etcd-leader", "etcd-leader"), large, []string{"peers: there is no link between etcd-leader and etcd-leader"}},
		{"the leader and a follower", link("etcd-leader", "etcd-follower"), large, nil},
		{"the only member and all of it", link("etcd-0", "etcd"), alone, []string{"peers: there is no link between etcd-0 and etcd"}},
		{"the only member and the API servers", link("etcd", "kube-apiserver"), alone, nil},
		{"API servers", link("kube-apiserver-0", "kube-apiserver-1"), twice, []string{"peers: there is no link between kube-apiserver-0 and kube-apiserver-1"}},
		{"wrong in itself", control.Fault{Kind: control.FaultKill}, small, []string{"components: kill requires this field"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { expectProblems(t, test.fault.ProblemsOn(test.on), test.want) })
	}
}

// Each kind of fault has rules and a hint that lists its fields.
func TestEveryKindIsKnown(t *testing.T) {
	for _, kind := range control.FaultKinds() {
		for _, p := range (control.Fault{Kind: kind}).Problems() {
			if p.Path == "kind" || p.Hint == "" {
				t.Errorf("problem of fault kind %s = %+v, want a known kind and a hint", kind, p)
			}
		}
	}
}

func expectProblems(t *testing.T, got []control.Problem, want []string) {
	t.Helper()
	var lines []string
	if len(got) > 0 {
		lines = strings.Split((&control.InvalidFault{got}).Error(), "\n")
	}
	if len(lines) != len(want) {
		t.Fatalf("got %d problems, want %d: %q", len(lines), len(want), lines)
	}
	for i := range want {
		if !strings.HasPrefix(lines[i], want[i]) {
			t.Errorf("got %s\nwant %s", lines[i], want[i])
		}
	}
}
