package fault

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stormglass/stormglass/controlplane/control"
)

func TestConflictingFaultsAreRefused(t *testing.T) {
	limit := func(name string) control.Fault {
		return control.Fault{Kind: control.FaultDescriptors, Components: []string{name}, Limit: 100}
	}
	network := func(kind, name string) control.Fault {
		f := control.Fault{Kind: kind, Components: []string{name}}
		if kind == control.FaultNetworkDelay {
			f.Delay = time.Millisecond
		}
		return f
	}
	disk := control.Fault{Kind: control.FaultDiskContention}
	quota := control.Fault{Kind: control.FaultQuota, Quota: 16 << 20}
	webhook := func(resource string) control.Fault {
		return control.Fault{Kind: control.FaultWebhook, Resource: resource, Fails: true}
	}
	tests := []struct {
		name          string
		first, second control.Fault
		taken         string // the part that both need; "" if both can be active
	}{
		{"two slow fsyncs of one member", slowOf("etcd-0", 0), slowOf("etcd", 0), "the fsync of etcd-0"},
		{"slow fsyncs of two members", slowOf("etcd-0", 0), slowOf("etcd-1", 0), ""},
		{"a pause in a kill", killOf("etcd-0", 0), pauseOf("etcd-0", 0), "the process of etcd-0"},
		{"a kill in a pause", pauseOf("etcd-0", 0), killOf("etcd-0", 0), "the process of etcd-0"},
		{"a pause of one member, a kill of another", killOf("etcd-0", 0), pauseOf("etcd-1", 0), ""},
		{"a kill would end a slow fsync", slowOf("etcd-0", 0), killOf("etcd-0", 0), "the process of etcd-0"},
		{"no agent answers in a paused process", pauseOf("etcd-0", 0), slowOf("etcd-0", 0), "the process of etcd-0"},
		{"slow and few descriptors", slowOf("etcd-0", 0), limit("etcd-0"), ""},
		{"two limits", limit("kube-apiserver-0"), limit("kube-apiserver"), "the descriptor limit of kube-apiserver-0"},
		{"a quota restarts all members", pauseOf("etcd-2", 0), quota, "the process of etcd-2"},
		{"two quotas", quota, quota, "the process of etcd-0"},
		{"a link is delayed and cut", network(control.FaultNetworkDelay, "etcd-0"), network(control.FaultPartition, "etcd-1"), "the link from etcd-0 to etcd-1"},
		{"a paused leader behind a slow link", network(control.FaultNetworkDelay, "etcd-1"), pauseOf("etcd-leader", 0), ""},
		{"two neighbours", disk, disk, "the disk"},
		{"two webhooks for one resource", webhook("pods"), webhook("pods"), "the webhook for pods"},
		{"two webhooks", webhook("pods"), webhook("deployments.apps"), ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m, _ := fixture(t)
				begin(t, m, test.first)
				checked := m.Check(t.Context(), test.second)
				_, err := m.Begin(t.Context(), test.second)
				if (checked == nil) != (err == nil) {
					t.Errorf("Check = %v, but Begin = %v; want both to fail or none", checked, err)
				}
				var busy *BusyError
				switch {
				case test.taken == "" && err != nil:
					t.Errorf("Begin = %v, want nil", err)
				case test.taken != "" && (!errors.As(err, &busy) || busy.Part != test.taken):
					t.Errorf("Begin = %v, want a BusyError for %s", err, test.taken)
				case test.taken == "":
					return
				}
				if _, err := m.Clear(t.Context(), "1"); err != nil {
					t.Fatal(err)
				}
				begin(t, m, test.second)
			})
		})
	}
}

func TestRefusalNamesActiveFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := fixture(t)
		begin(t, m, killOf("etcd-0", 90*time.Second))
		time.Sleep(10 * time.Second)
		_, err := m.Begin(t.Context(), pauseOf("etcd-0", 0))
		want := "pause cannot begin: the process of etcd-0 is already used by fault 1, kill, for another 1m20s (end it with: controlplane fault clear 1)"
		if err == nil || err.Error() != want {
			t.Errorf("Begin = %v\nwant %s", err, want)
		}
	})
}

// A second fault on a follower affects a follower that still runs.
func TestFollowerSelectsOneWithoutFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		begin(t, m, killOf("etcd-follower", 0))
		begin(t, m, killOf("etcd-follower", 0))
		var busy *BusyError
		if _, err := m.Begin(t.Context(), killOf("etcd-follower", 0)); !errors.As(err, &busy) {
			t.Errorf("Begin on a third follower of three members = %v, want a BusyError", err)
		}
		same(t, "what was done", h.lines(), "0s kill etcd-0", "0s kill etcd-2")
	})
}

// A fault on the links of a follower chooses a follower that runs, because other followers have no links.
func TestFollowerMustRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, _ := fixture(t)
		begin(t, m, killOf("etcd-0", 0))
		begin(t, m, slowOf("etcd-2", 0)) // keeps running
		s := begin(t, m, control.Fault{Kind: control.FaultPartition, Components: []string{"etcd-follower"}, Peers: []string{"kube-apiserver"}})
		same(t, "the follower", s.On, "etcd-2")
	})
}

// The error of a refused fault says when the active fault ends. It distinguishes an end that is not known yet from a
// fault that lasts until it is cleared.
func TestRefusalDescribesEndOfActiveFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		refused := func(f control.Fault, want string) {
			t.Helper()
			if _, err := m.Begin(t.Context(), f); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("Begin = %v, want %q in it", err, want)
			}
		}
		h.stopping, h.starting = time.Second, time.Second
		begin(t, m, control.Fault{Kind: control.FaultRestart, Components: []string{"kube-apiserver-0"}})
		refused(pauseOf("kube-apiserver-0", 0), "is already used by fault 1, restart, until all components have started again (end it")
		go func() {
			if _, err := m.Begin(t.Context(), control.Fault{Kind: control.FaultQuota, Quota: 16 << 20}); err != nil {
				t.Error(err)
			}
		}()
		synctest.Wait()
		refused(pauseOf("etcd-0", 0), "is already used by fault 2, etcdQuota, which is about to begin (end")
		time.Sleep(time.Minute)
		refused(pauseOf("etcd-0", 0), "is already used by fault 2, etcdQuota, until it is cleared (end it")
	})
}

func TestWebhookNameIsAValidLabelValue(t *testing.T) {
	for resource, want := range map[string]string{
		"pods":             "stormglass-fault-12-pods",
		"deployments.apps": "stormglass-fault-12-deployments-apps",
		"customresourcedefinitions.apiextensions.k8s.io": "stormglass-fault-12-customresourcedefinitions-apiextensions-k8s",
	} {
		got := webhookName("12", resource)
		if got != want || len(validation.IsValidLabelValue(got)) > 0 || len(validation.IsDNS1123Label(got)) > 0 {
			t.Errorf("webhookName for %s = %q, want %q", resource, got, want)
		}
	}
}

// After the holder of a lease is lost, for example by an earlier fault, another component acquires the lease up to 24 s
// later. A fault on the leader waits for the new leader.
func TestFaultOnALeaderWaitsForItsElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.elects = time.Now().Add(24 * time.Second)
		if err := m.Check(t.Context(), killOf("kube-controller-manager-leader", 0)); err != nil {
			t.Errorf("Check = %v, want nil", err)
		}
		h.elects = time.Now().Add(24 * time.Second)
		f, err := m.Begin(t.Context(), killOf("kube-controller-manager-leader", 0))
		if err != nil || !slices.Equal(f.On, []string{"kube-controller-manager-1"}) || f.Active.Sub(h.elects) > time.Second {
			t.Errorf("Begin = %v on %v, %s after the election; want the new leader within 1 s", err, f.On, f.Active.Sub(h.elects))
		}
	})
}

func TestImpossibleFaultsAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.breaks("neighbour available", errors.New("no second file system"))
		refuse(m, control.FaultSlowFsync, errors.New("no seccomp"))
		tests := []struct {
			fault   control.Fault
			invalid bool
			want    string
		}{
			{pauseOf("etcd-3", 0), true, "there is no etcd-3 (there is etcd-0 to etcd-2)"},
			{pauseOf("kube-controller-manager-leader", 0), false, "pause cannot begin: kube-controller-manager-leader: no kube-controller-manager leads now"},
			{control.Fault{Kind: control.FaultPartition, Components: []string{"kube-apiserver-0"}, Peers: []string{"kube-apiserver-1"}}, true,
				"peers: there is no link between kube-apiserver-0 and kube-apiserver-1"},
			{control.Fault{Kind: control.FaultDiskContention}, false, "diskContention cannot begin: no second file system"},
			{slowOf("etcd-0", 0), false, "slowFsync cannot begin: no seccomp"},
		}
		for _, test := range tests {
			checked := m.Check(t.Context(), test.fault)
			_, err := m.Begin(t.Context(), test.fault)
			if err == nil || checked == nil || err.Error() != checked.Error() || !strings.Contains(err.Error(), test.want) {
				t.Errorf("Check = %v\nBegin = %v\nwant %s", checked, err, test.want)
			}
			var invalid *control.InvalidFault
			if errors.As(err, &invalid) != test.invalid {
				t.Errorf("Begin = %v; is it an InvalidFault? want %v", err, test.invalid)
			}
		}
		if len(h.lines()) > 0 {
			t.Errorf("Begin made changes: %v", h.lines())
		}
	})
}

// etcd keeps a quorum while the members get the small quota, and while they lose it. Afterwards, the fault recovers
// from NOSPACE as an operator would.
func TestQuota(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.starting = 2 * time.Second
		h.answers["/v3/maintenance/alarm"] = `{"alarms": [{"memberID": "17", "alarm": "NOSPACE"}, {"memberID": "18", "alarm": "CORRUPT"}]}`
		h.answers["/v3/maintenance/status"] = `{"header": {"revision": "4711"}}`
		h.breaks("etcd-0 /v3/kv/compaction", errors.New("etcdserver: mvcc: required revision has been compacted"))
		s := begin(t, m, control.Fault{Kind: control.FaultQuota, Quota: 16 << 20, For: time.Minute})
		if after := s.Active.Sub(s.Asked); after != 6*time.Second {
			t.Errorf("the fault became active after %v, want 6s", after)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		want := []string{
			"0s kill etcd-0", "0s start etcd-0 quota-backend-bytes=16777216",
			"2s kill etcd-2", "2s start etcd-2 quota-backend-bytes=16777216",
			"4s kill etcd-1", "4s start etcd-1 quota-backend-bytes=16777216", // the leader
			"1m6s kill etcd-0", "1m6s start etcd-0", "1m8s kill etcd-2", "1m8s start etcd-2", "1m10s kill etcd-1", "1m10s start etcd-1",
			`1m12s etcd-0 /v3/maintenance/alarm {"action":"GET"}`,
			`1m12s etcd-0 /v3/maintenance/alarm {"action":"DEACTIVATE","alarm":"NOSPACE","memberID":"17"}`,
			`1m12s etcd-0 /v3/maintenance/status {}`,
			`1m12s etcd-0 /v3/maintenance/defragment {}`, `1m12s etcd-2 /v3/maintenance/defragment {}`, `1m12s etcd-1 /v3/maintenance/defragment {}`,
		}
		same(t, "what was done", h.trace, want...)
		if s := m.List()[0]; s.Error != "" || s.Ended.IsZero() {
			t.Errorf("status = %+v, want an ended fault", s)
		}
	})
}

// If a member does not serve again, for example because it is cut off from its peers, Begin returns an error instead of
// waiting forever.
func TestQuotaGivesUpAMember(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.starting = time.Hour
		began := time.Now()
		_, err := m.Begin(t.Context(), control.Fault{Kind: control.FaultQuota, Quota: 16 << 20})
		if err == nil || !strings.Contains(err.Error(), "etcd-0 is not ready after its restart") || time.Since(began) > 10*time.Minute {
			t.Errorf("Begin after %s = %v, want an error about etcd-0 within 10 minutes", time.Since(began), err)
		}
	})
}

// If a killed member could not be started again, another Clear starts it, and no member keeps the small quota.
func TestFailedQuotaCanBeCleared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, h := fixture(t)
		h.answers["/v3/maintenance/status"] = `{"header": {"revision": "4711"}}`
		h.breaks("start etcd-2", errors.New("the disk is full"))
		_, err := m.Begin(t.Context(), control.Fault{Kind: control.FaultQuota, Quota: 16 << 20})
		if err == nil || !strings.Contains(err.Error(), "the disk is full") {
			t.Fatalf("Begin = %v, want the error of the start", err)
		}
		h.breaks("start etcd-2", nil)
		if _, err := m.Clear(t.Context(), "1"); err != nil {
			t.Fatalf("Clear = %v, want nil", err)
		}
		last := map[string]string{}
		for _, line := range h.trace {
			if words := strings.Fields(line); words[1] == "kill" || words[1] == "start" {
				last[words[2]] = strings.Join(words[1:], " ")
			}
		}
		for _, name := range []string{"etcd-0", "etcd-1", "etcd-2"} {
			if last[name] != "start "+name {
				t.Errorf("last step of %s = %q, want a start without flags", name, last[name])
			}
		}
	})
}
