package mirror

import (
	"net"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/process"
	"github.com/stormglass/stormglass/controlplane/internal/supervisor"
)

// A pod can be dialled at the port at which its component serves, and at the port that kubeadm's component would have.
func TestDial(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	child := &process.Child{Started: time.Now()}
	n := &node{name: nodeName(0), cfg: &Config{Components: func() []supervisor.Snapshot {
		return []supervisor.Snapshot{
			{Name: "kube-scheduler-0", Kind: control.KindScheduler, Address: "https://" + l.Addr().String(), Child: child},
			{Name: "oidc-issuer-0", Kind: control.KindOIDCIssuer, Address: "https://127.0.0.1:9", Child: child},
		}
	}}}
	own := int32(l.Addr().(*net.TCPAddr).Port)
	for _, test := range []struct {
		pod  string
		port int32
		err  string
	}{
		{pod: "kube-scheduler-control-plane", port: own},
		{pod: "kube-scheduler-control-plane", port: 10259},
		{"kube-scheduler-control-plane", 10257, "kube-scheduler-0 does not listen on port 10257 (forward port 10259)"},
		{"oidc-issuer-control-plane", 443, "oidc-issuer-0 does not listen on port 443 (forward port 9)"},
		{"kube-scheduler-control-plane-1", 10259, `pod "kube-scheduler-control-plane-1" does not exist`},
	} {
		conn, err := n.Dial(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: test.pod}}, test.port)
		if err == nil {
			if got := conn.RemoteAddr().String(); got != l.Addr().String() {
				t.Errorf("%s, port %d: connected to %s", test.pod, test.port, got)
			}
			conn.Close()
		}
		if got := errorText(err); got != test.err {
			t.Errorf("%s, port %d: error %q, want %q", test.pod, test.port, got, test.err)
		}
	}
	if ports := n.staticPod(n.cfg.Components()[0]).Spec.Containers[0].Ports; len(ports) != 1 || ports[0].ContainerPort != own {
		t.Errorf("ports of the pod of a component at port %d = %v, want only this port", own, ports)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
