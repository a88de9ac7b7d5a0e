package node

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func withVolume(source corev1.VolumeSource) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: source}} }
}

// failedMount returns the message of a pod's first Event FailedMount.
func (s *stub) failedMount(pod string) string {
	i := slices.IndexFunc(s.events, func(e corev1.Event) bool { return e.Reason == "FailedMount" && e.InvolvedObject.Name == pod })
	if i < 0 {
		return ""
	}
	return s.events[i].Message
}

func TestPodWaitsForTheObjectsOfItsVolumes(t *testing.T) {
	s, _ := started(t, nil)
	phase := corev1.PersistentVolumeClaimPhase("")
	s.update(func() {
		s.answer = func(w http.ResponseWriter, r request) bool {
			if !strings.HasSuffix(r.path, "/namespaces/ns/persistentvolumeclaims/data") {
				return false
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			if phase == "" {
				refuse(w, 404, metav1.StatusReasonNotFound, `persistentvolumeclaims "data" not found`)
			} else {
				reply(w, 200, "v1", "PersistentVolumeClaim", &corev1.PersistentVolumeClaim{Status: corev1.PersistentVolumeClaimStatus{Phase: phase}})
			}
			return true
		}
	})
	appears := func(resource, kind string) func() {
		return func() {
			for _, w := range s.open(resource) {
				w.events <- frame("ADDED", kind, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings", ResourceVersion: "1000"}})
			}
		}
	}
	optional := true
	settings := corev1.LocalObjectReference{Name: "settings"}
	for name, test := range map[string]struct {
		source  corev1.VolumeSource
		message string
		appear  func()
	}{
		"config": {
			corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: settings}},
			`MountVolume.SetUp failed for volume "v" : configmap "settings" not found`, appears("configmaps", "ConfigMap"),
		},
		"secret": {
			corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: settings}}}}},
			`MountVolume.SetUp failed for volume "v" : secret "settings" not found`, appears("secrets", "Secret"),
		},
		"claim": {
			corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}},
			"Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[v], failed to process volumes=[v]: error processing PVC ns/data: " +
				`failed to fetch PVC from API server: get persistentvolumeclaims: persistentvolumeclaims "data" not found`,
			func() { phase = corev1.ClaimBound },
		},
		"optional": {
			source: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "absent"}, Optional: &optional}},
		},
	} {
		s.bind("sg-0", name, withVolume(test.source))
		if test.message != "" {
			s.await(name+" is told", func() bool { return s.failedMount(name) != "" })
			s.locked(func() {
				if got := s.failedMount(name); got != test.message {
					t.Errorf("%s: message %q, want %q", name, got, test.message)
				}
				if got := tell(s.pods[name].Status); got != "Pending, ContainerCreating" {
					t.Errorf("%s is %s", name, got)
				}
			})
			s.update(test.appear)
		}
		s.await(name+" runs", func() bool { return isReady(s.pods[name]) })
	}
}
