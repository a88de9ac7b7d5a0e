// Package manifest creates the Kubernetes objects that run loadgen in a cluster.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/yaml"
)

// nobody is the user and group ID with which containers run. Any ID other than root's works.
const nobody = 65532

var imageForm = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9._:/@-]*$`)

// CheckImage returns an error if name, the value of --image, is not a valid image name.
func CheckImage(name string) error {
	switch {
	case name == "":
		return errors.New("--image is missing (name an image that has loadgen as its entry point)")
	case !imageForm.MatchString(name):
		return fmt.Errorf("--image %q is not an image name (write it as registry.example.com/stormglass/loadgen:v1)", name)
	}
	return nil
}

// CheckNamespace returns an error if name is not a valid namespace name. flag is the name of the flag that sets the
// namespace, without --.
func CheckNamespace(flag, name string) error {
	if wrong := validation.IsDNS1123Label(name); len(wrong) > 0 {
		return fmt.Errorf("--%s %q is not a namespace name (lower-case letters, digits and -, at most 63)", flag, name)
	}
	return nil
}

// Namespace returns a namespace in which Pod Security enforces the profile "restricted". It adds a label to m.Labels,
// which must not be nil.
func Namespace(m metav1.ObjectMeta) *corev1.Namespace {
	m.Labels["pod-security.kubernetes.io/enforce"] = "restricted"
	return &corev1.Namespace{TypeMeta: Type("v1", "Namespace"), ObjectMeta: m}
}

// Pod returns the spec of a pod with one container, which runs loadgen with args. It satisfies the Pod Security profile
// "restricted". temporary is the size limit of /tmp, such as "64Mi".
func Pod(account, image, temporary string, args ...string) corev1.PodSpec {
	return corev1.PodSpec{
		ServiceAccountName: account,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(nobody)), RunAsGroup: new(int64(nobody)), FSGroup: new(int64(nobody)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: "loadgen", Image: image, Args: args,
			Env:          []corev1.EnvVar{{Name: "TMPDIR", Value: "/tmp"}},
			VolumeMounts: []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
		}},
		Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: new(resource.MustParse(temporary))}}}},
	}
}

// Type returns the TypeMeta of an object.
func Type(apiVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: apiVersion, Kind: kind}
}

// YAML returns objects as YAML documents for `kubectl apply`.
func YAML(objects []runtime.Object) ([]byte, error) {
	var text bytes.Buffer
	for i, object := range objects {
		u, err := Plain(object)
		if err != nil {
			return nil, err
		}
		document, err := yaml.Marshal(u.Object)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			text.WriteString("---\n")
		}
		text.Write(document)
	}
	return text.Bytes(), nil
}

// Plain returns an object without its status and without unset fields, as in a manifest.
func Plain(object runtime.Object) (*unstructured.Unstructured, error) {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	delete(fields, "status")
	dropNulls(fields)
	return &unstructured.Unstructured{Object: fields}, nil
}

// dropNulls removes fields that are null. It also removes metadata, status, strategy and resources if they are empty.
func dropNulls(fields map[string]any) {
	for name, value := range fields {
		switch value := value.(type) {
		case nil:
			delete(fields, name)
		case map[string]any:
			if dropNulls(value); len(value) == 0 && (name == "metadata" || name == "status" || name == "strategy" || name == "resources") {
				delete(fields, name)
			}
		case []any:
			for _, item := range value {
				if under, ok := item.(map[string]any); ok {
					dropNulls(under)
				}
			}
		}
	}
}

// Resource returns the resource of a kind. It supports only the kinds of the objects that run loadgen in a cluster.
func Resource(kind string) schema.GroupVersionResource {
	group := map[string]schema.GroupVersion{
		"ClusterRole": rbacv1.SchemeGroupVersion, "ClusterRoleBinding": rbacv1.SchemeGroupVersion, "Role": rbacv1.SchemeGroupVersion, "RoleBinding": rbacv1.SchemeGroupVersion,
		"Job": batchv1.SchemeGroupVersion, "CronJob": batchv1.SchemeGroupVersion,
	}
	of, ok := group[kind]
	if !ok {
		of = corev1.SchemeGroupVersion
	}
	return of.WithResource(strings.ToLower(kind) + "s")
}
