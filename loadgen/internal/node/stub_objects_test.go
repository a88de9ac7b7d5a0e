package node

import (
	"encoding/json"
	"net/http"
	"strconv"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
)

func (s *stub) lease(w http.ResponseWriter, q request, name string) {
	switch q.method {
	case "POST", "PUT":
		var l coordinationv1.Lease
		s.decode(q.body, &l)
		s.update(func() {
			s.version++
			l.ResourceVersion = strconv.Itoa(s.version)
			s.leases[l.Name] = &l
		})
		reply(w, 200, "coordination.k8s.io/v1", "Lease", &l)
	default:
		refuse(w, 404, metav1.StatusReasonNotFound, "leases "+name+" not found")
	}
}

func (s *stub) pod(w http.ResponseWriter, q request, parts []string) {
	if q.method == "DELETE" {
		name := parts[len(parts)-1]
		s.mu.Lock()
		held := s.pods[name]
		s.mu.Unlock()
		if held != nil && len(held.Finalizers) > 0 {
			reply(w, 200, "v1", "Pod", held)
			return
		}
		p := s.removePod(name)
		if p == nil {
			refuse(w, 404, metav1.StatusReasonNotFound, "pods not found")
			return
		}
		reply(w, 200, "v1", "Pod", p)
		return
	}
	if q.method == "GET" {
		s.mu.Lock()
		p := s.pods[parts[len(parts)-1]]
		s.mu.Unlock()
		if p == nil {
			refuse(w, 404, metav1.StatusReasonNotFound, "pods not found")
			return
		}
		reply(w, 200, "v1", "Pod", p)
		return
	}
	var out *corev1.Pod
	s.changePod(parts[len(parts)-2], func(p *corev1.Pod) {
		old, err := json.Marshal(p)
		must(s.t, err)
		merged, err := strategicpatch.StrategicMergePatch(old, q.body, p)
		must(s.t, err)
		*p = corev1.Pod{}
		must(s.t, json.Unmarshal(merged, p))
		out = p
	})
	if out == nil {
		refuse(w, 404, metav1.StatusReasonNotFound, "pods not found")
		return
	}
	reply(w, 200, "v1", "Pod", out)
}

// changePod changes a pod and sends the change to the watches.
func (s *stub) changePod(name string, change func(*corev1.Pod)) {
	s.update(func() {
		old := s.pods[name]
		if old == nil {
			return
		}
		p := old.DeepCopy()
		s.version++
		p.ResourceVersion = strconv.Itoa(s.version)
		change(p)
		s.pods[name] = p
		s.tell("MODIFIED", p)
	})
}

// bind creates a pod that is bound to a node.
func (s *stub) bind(node, name string, change func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID("uid-" + name)},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c", Image: "pause"}}},
		Status:     corev1.PodStatus{Phase: corev1.PodPending},
	}
	if change != nil {
		change(p)
	}
	s.update(func() {
		s.version++
		p.ResourceVersion = strconv.Itoa(s.version)
		s.pods[name] = p
		s.tell("ADDED", p)
	})
	return p
}

func (s *stub) removePod(name string) (p *corev1.Pod) {
	s.update(func() {
		if p = s.pods[name]; p == nil {
			return
		}
		p = p.DeepCopy()
		s.version++
		p.ResourceVersion = strconv.Itoa(s.version)
		delete(s.pods, name)
		s.tell("DELETED", p)
	})
	return p
}

// deletePod requests a graceful deletion, as `kubectl delete pod` does. A pod that has ended has no grace period.
func (s *stub) deletePod(name string) {
	now, grace := metav1.Now(), int64(30)
	s.changePod(name, func(p *corev1.Pod) {
		if finished(p.Status.Phase) {
			grace = 0
		}
		p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &now, &grace
	})
}
