package node

import (
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

func podPath(namespace, name string) string {
	return "/api/v1/namespaces/" + namespace + "/pods/" + name
}

// write queues a write of a pod's status, late on purpose where the node is slow.
func (k *kubelet) write(life *life, job func()) {
	k.late(life, func() { life.writes.add(job) })
}

func getPod(p *pod) call {
	return call{verb: "get", resource: "pods", method: http.MethodGet, path: podPath(p.namespace, p.name)}
}

// patchPodStatus returns the pod's new resourceVersion. The GET that a kubelet makes before is left out: it would
// be a fifth of a pod's cost here.
func (k *kubelet) patchPodStatus(ctx context.Context, p *pod, status *corev1.PodStatus) (uint64, error) {
	body, err := statusPatch(p.uid, status)
	if err != nil {
		return 0, err
	}
	answer, err := k.link.do(ctx, call{
		verb: "patch", resource: "pods/status", method: http.MethodPatch, path: podPath(p.namespace, p.name) + "/status",
		contentType: strategic, body: body,
	})
	if err != nil {
		return 0, err
	}
	k.ledger.statusWrites.Add(1)
	raw, err := protobuf.Unwrap(answer)
	if err != nil {
		return 0, err
	}
	v, err := scan(raw, layout{})
	return number(string(v.version)), err
}

// deletePod ends a pod that has terminated.
func (k *kubelet) deletePod(ctx context.Context, p *pod) error {
	body, err := encode("v1", "DeleteOptions", &metav1.DeleteOptions{
		GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(p.uid)),
	})
	if err != nil {
		return err
	}
	_, err = k.link.do(ctx, call{
		verb: "delete", resource: "pods", method: http.MethodDelete, path: podPath(p.namespace, p.name),
		contentType: protobuf.ContentType, body: body,
	})
	return err
}
