package run

import (
	"testing"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// TestFaultLine checks that lines of the timeline distinguish faults of the same kind.
func TestFaultLine(t *testing.T) {
	for want, s := range map[string]control.FaultStatus{
		"etcdQuota on etcd-0, quota 36MiB, to the end of the phase":                      {Fault: control.Fault{Kind: control.FaultQuota, Quota: 36 << 20}, On: []string{"etcd-0"}},
		"webhook for configmaps, 5s, for 1m0s":                                           {Fault: control.Fault{Kind: control.FaultWebhook, Resource: "configmaps", Delay: 5 * time.Second, For: time.Minute}},
		"webhook for secrets, fails, policy Ignore, to the end of the phase":             {Fault: control.Fault{Kind: control.FaultWebhook, Resource: "secrets", Fails: true, Ignore: true}},
		"restart on kube-apiserver-0":                                                    {Fault: control.Fault{Kind: control.FaultRestart}, On: []string{"kube-apiserver-0"}},
		"networkDelay on etcd-0 to etcd, 20ms \u00b1 10ms, to the end of the phase":      {Fault: control.Fault{Kind: control.FaultNetworkDelay, Peers: []string{"etcd"}, Delay: 20 * time.Millisecond, Jitter: 10 * time.Millisecond}, On: []string{"etcd-0"}},
		"descriptorLimit on kube-apiserver-0, 1300 descriptors, to the end of the phase": {Fault: control.Fault{Kind: control.FaultDescriptors, Limit: 1300}, On: []string{"kube-apiserver-0"}},
	} {
		if got := faultLine(s); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
