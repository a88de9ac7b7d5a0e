package node

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

type objectRef struct{ resource, namespace, name string }

// absent returns a kubelet's message that the object was not found.
func (r objectRef) absent() string {
	return fmt.Sprintf("%s %q not found", strings.TrimSuffix(r.resource, "s"), r.name)
}

// objectWatch is the watch of one ConfigMap or Secret. It exists while pods on the node refer to the object.
type objectWatch struct {
	users   int
	watcher *watcher
	known   bool // whether the initial list has arrived
	found   bool // whether the object exists
}

// objectWatchTimeout is a kubelet's shortest timeoutSeconds for the watch of a ConfigMap or Secret
// (pkg/kubelet/util/manager).
const objectWatchTimeout = 30 * time.Minute

// reference opens the watches of the ConfigMaps and Secrets that a pod refers to, unless they are open already. The
// caller holds k.mu.
func (k *kubelet) reference(p *pod, spec *corev1.Pod) {
	if !k.plan.own() {
		return
	}
	p.refs = objectRefs(spec)
	for _, ref := range p.refs {
		o := k.objects[ref]
		if o == nil {
			o = &objectWatch{watcher: k.fleet.watcher(k.life, k.link, ref.resource,
				"/api/v1/namespaces/"+ref.namespace+"/"+ref.resource, fields("metadata.name="+ref.name))}
			o.watcher.timeout, o.watcher.refusable = objectWatchTimeout, k.plan.restricted()
			set := func(known, found bool) {
				k.mu.Lock()
				defer k.mu.Unlock()
				o.known, o.found = known, found
			}
			o.watcher.sink = sink{
				begin: func() { set(false, false) }, event: func(kind string, _ []byte, _ view) { set(true, kind != "DELETED") },
				listed: func() { set(true, o.found) },
			}
			k.objects[ref] = o
			o.watcher.start()
		}
		o.users++
	}
}

// dereference closes the watches of a pod's ConfigMaps and Secrets unless other pods need them. The caller holds k.mu.
func (k *kubelet) dereference(p *pod) {
	for _, ref := range p.refs {
		o := k.objects[ref]
		if o == nil {
			continue
		}
		if o.users--; o.users == 0 {
			delete(k.objects, ref)
			k.life.spawn(o.watcher.stop) // stop writes to the connection, so it must not run on the read loop
		}
	}
	p.refs = nil
}

// objectRefs returns the ConfigMaps and Secrets that a pod refers to, without duplicates.
func objectRefs(pod *corev1.Pod) []objectRef {
	var out []objectRef
	seen := map[objectRef]bool{}
	add := func(resource, name string) {
		ref := objectRef{resource, pod.Namespace, name}
		if name != "" && !seen[ref] {
			seen[ref] = true
			out = append(out, ref)
		}
	}
	for _, v := range pod.Spec.Volumes {
		eachObject(&v, func(resource, name string, _ *bool) { add(resource, name) })
	}
	for _, s := range pod.Spec.ImagePullSecrets {
		add("secrets", s.Name)
	}
	eachContainer(pod, func(_ int, c *corev1.Container, _ string) {
		eachVariable(c, func(resource, name string, _ *bool) { add(resource, name) })
	})
	return out
}

// eachVariable calls f for each ConfigMap and Secret from which a container takes environment variables.
func eachVariable(c *corev1.Container, f func(resource, name string, optional *bool)) {
	for _, from := range c.EnvFrom {
		if ref := from.ConfigMapRef; ref != nil {
			f("configmaps", ref.Name, ref.Optional)
		}
		if ref := from.SecretRef; ref != nil {
			f("secrets", ref.Name, ref.Optional)
		}
	}
	for _, env := range c.Env {
		if env.ValueFrom == nil {
			continue
		}
		if ref := env.ValueFrom.ConfigMapKeyRef; ref != nil {
			f("configmaps", ref.Name, ref.Optional)
		}
		if ref := env.ValueFrom.SecretKeyRef; ref != nil {
			f("secrets", ref.Name, ref.Optional)
		}
	}
}

// eachObject calls f for each ConfigMap and Secret of a volume.
func eachObject(v *corev1.Volume, f func(resource, name string, optional *bool)) {
	if v.ConfigMap != nil {
		f("configmaps", v.ConfigMap.Name, v.ConfigMap.Optional)
	}
	if v.Secret != nil {
		f("secrets", v.Secret.SecretName, v.Secret.Optional)
	}
	if v.Projected == nil {
		return
	}
	for _, s := range v.Projected.Sources {
		if s.ConfigMap != nil {
			f("configmaps", s.ConfigMap.Name, s.ConfigMap.Optional)
		}
		if s.Secret != nil {
			f("secrets", s.Secret.Name, s.Secret.Optional)
		}
	}
}
