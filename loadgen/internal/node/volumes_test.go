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

func withVariable(source *corev1.EnvVarSource) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "V", ValueFrom: source}} }
}

func withVariables(source corev1.EnvFromSource) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[0].EnvFrom = []corev1.EnvFromSource{source} }
}

// failed returns the message of a pod's first Event FailedMount or Failed.
func (s *stub) failed(pod string) string {
	i := slices.IndexFunc(s.events, func(e corev1.Event) bool {
		return (e.Reason == "FailedMount" || e.Reason == "Failed") && e.InvolvedObject.Name == pod
	})
	if i < 0 {
		return ""
	}
	return s.events[i].Message
}

func TestPodWaitsForItsObjects(t *testing.T) {
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
	settings, variables := corev1.LocalObjectReference{Name: "settings"}, corev1.LocalObjectReference{Name: "variables"}
	const unmounted, unconfigured = "Pending, ContainerCreating", "Pending, CreateContainerConfigError"
	for name, test := range map[string]struct {
		change         func(*corev1.Pod)
		state, message string
		appear         func()
	}{
		"config": {
			withVolume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: settings}}), unmounted,
			`MountVolume.SetUp failed for volume "v" : configmap "settings" not found`, appears("configmaps", "ConfigMap"),
		},
		"secret": {
			withVolume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{Secret: &corev1.SecretProjection{LocalObjectReference: settings}}}}}), unmounted,
			`MountVolume.SetUp failed for volume "v" : secret "settings" not found`, appears("secrets", "Secret"),
		},
		"claim": {
			withVolume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}), unmounted,
			"Unable to attach or mount volumes: unmounted volumes=[v], unattached volumes=[v], failed to process volumes=[v]: error processing PVC ns/data: " +
				`failed to fetch PVC from API server: get persistentvolumeclaims: persistentvolumeclaims "data" not found`,
			func() { phase = corev1.ClaimBound },
		},
		"optional": {
			change: withVolume(corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "absent"}, Optional: &optional}}),
		},
		"variable": {
			withVariable(&corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: variables, Key: "k"}}), unconfigured,
			`Error: secret "variables" not found`, appears("secrets", "Secret"),
		},
		"variables": {
			withVariables(corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: variables}}), unconfigured,
			`Error: configmap "variables" not found`, appears("configmaps", "ConfigMap"),
		},
		"optional-variables": {
			change: withVariables(corev1.EnvFromSource{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "absent"}, Optional: &optional}}),
		},
	} {
		s.bind("sg-0", name, test.change)
		if test.message != "" {
			s.await(name+" is told", func() bool { return s.failed(name) != "" && tell(s.pods[name].Status) == test.state })
			s.locked(func() {
				if got := s.failed(name); got != test.message {
					t.Errorf("%s: message %q, want %q", name, got, test.message)
				}
			})
			s.update(test.appear)
		}
		s.await(name+" runs", func() bool { return isReady(s.pods[name]) })
	}
}
