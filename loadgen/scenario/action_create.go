package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/loadgen/internal/builtin"
)

// creatable lists the resources that actions can create. The run removes their objects in this order.
var creatable = []struct {
	resource   string
	namespaced bool
}{
	{resource: "validatingadmissionpolicybindings.admissionregistration.k8s.io"},
	{resource: "validatingadmissionpolicies.admissionregistration.k8s.io"},
	{resource: "mutatingadmissionpolicybindings.admissionregistration.k8s.io"},
	{resource: "mutatingadmissionpolicies.admissionregistration.k8s.io"},
	{resource: "flowschemas.flowcontrol.apiserver.k8s.io"},
	{resource: "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io"},
	{resource: "priorityclasses.scheduling.k8s.io"},
	{resource: "storageversionmigrations.storagemigration.k8s.io"},
	{resource: definitionResource},
	{resource: "resourcequotas", namespaced: true},
	{resource: "limitranges", namespaced: true},
}

// definitionResource is the resource of custom resource definitions.
const definitionResource = "customresourcedefinitions.apiextensions.k8s.io"

// Creatable is a kind of object that actions can create.
type Creatable struct {
	Resource schema.GroupVersionResource
	Kind     string
	// Namespaced is true if the run creates the objects in each of its namespaces. The deletion of a namespace deletes
	// them.
	Namespaced bool
}

// Defines reports whether the kind is CustomResourceDefinition.
func (c Creatable) Defines() bool { return c.Resource.GroupResource().String() == definitionResource }

// Creatables returns the kinds of objects that actions can create, in the order in which the run removes the objects.
func Creatables() []Creatable {
	var all []Creatable
	for _, c := range creatable {
		of := builtin.Resources()[c.resource]
		gv, _ := schema.ParseGroupVersion(of.Versions[0])
		plural, _, _ := strings.Cut(c.resource, ".")
		all = append(all, Creatable{gv.WithResource(plural), of.Kind, c.namespaced})
	}
	return all
}

// upstreamObjects lists, by kind, the names of objects that every API server creates itself. The API server defines
// these names in k8s.io/apiserver/pkg/apis/flowcontrol/bootstrap and in k8s.io/kubernetes/pkg/apis/scheduling/v1
// (SystemPriorityClasses).
var upstreamObjects = map[string][]string{
	"FlowSchema": {
		"exempt", "probes", "system-leader-election", "system-node-high", "system-nodes", "kube-controller-manager", "kube-scheduler",
		"kube-system-service-accounts", "service-accounts", "global-default", "catch-all",
	},
	"PriorityLevelConfiguration": {
		"exempt", "system", "node-high", "leader-election", "workload-high", "workload-low", "global-default", "catch-all",
	},
	"PriorityClass": {"system-node-critical", "system-cluster-critical"},
}

// Manifest is an object that an action creates.
type Manifest struct {
	Creatable
	Name   string
	Object map[string]any
	// Count is the number of copies to create. In each copy, {i} becomes the number of the copy, from 0. Zero means one
	// unchanged object.
	Count int
}

// WantsConversion reports whether the object is a CustomResourceDefinition that has the conversion strategy Webhook but
// does not configure the webhook.
func (m Manifest) WantsConversion() bool {
	strategy, _, _ := unstructured.NestedString(m.Object, "spec", "conversion", "strategy")
	_, named, _ := unstructured.NestedFieldNoCopy(m.Object, "spec", "conversion", "webhook")
	return m.Defines() && strategy == "Webhook" && !named
}

// String returns the kind and the name.
func (m Manifest) String() string { return m.Kind + " " + m.Name }

// Objects returns the objects of the manifest: Count numbered objects, or one unchanged object if Count is 0.
func (m Manifest) Objects() []Manifest {
	all := make([]Manifest, max(m.Count, 1))
	for i := range all {
		all[i] = m.object(i)
	}
	return all
}

func (m Manifest) object(i int) Manifest {
	one := Manifest{Creatable: m.Creatable, Name: m.Name, Object: m.Object}
	if m.Count > 0 {
		number := strconv.Itoa(i)
		one.Name = strings.ReplaceAll(m.Name, numberMark, number)
		one.Object, _ = numbered(m.Object, number).(map[string]any)
	}
	return one
}

// numberMark is the placeholder in a manifest for the number of the copy.
const numberMark = "{i}"

// numbered returns a copy of value, a part of a manifest, with numberMark replaced by number.
func numbered(value any, number string) any {
	switch v := value.(type) {
	case string:
		return strings.ReplaceAll(v, numberMark, number)
	case []any:
		all := make([]any, len(v))
		for i := range v {
			all[i] = numbered(v[i], number)
		}
		return all
	case map[string]any:
		all := make(map[string]any, len(v))
		for key, x := range v {
			all[strings.ReplaceAll(key, numberMark, number)] = numbered(x, number)
		}
		return all
	}
	return value
}

// Manifest returns the manifest of a create action. The Kind of the manifest is "" if actions cannot create such an
// object.
func (a Action) Manifest() Manifest {
	m := Manifest{Count: a.Count}
	m.Object, _ = a.Object.(map[string]any)
	meta, _ := m.Object["metadata"].(map[string]any)
	m.Name, _ = meta["name"].(string)
	for _, c := range Creatables() {
		if m.Object["kind"] == c.Kind && m.Object["apiVersion"] == c.Resource.GroupVersion().String() {
			m.Creatable = c
		}
	}
	return m
}

// Manifests returns the objects that the setup and actions create, in order.
func (s *Scenario) Manifests() []Manifest {
	all := s.SetupManifests()
	for i := range s.Phases {
		all = append(all, s.Phases[i].Manifests()...)
	}
	return all
}

// SetupManifests returns the objects that the setup creates, in order.
func (s *Scenario) SetupManifests() []Manifest { return manifestsOf(s.Setup) }

// Manifests returns the objects that the phase's actions create, in order.
func (p *Phase) Manifests() []Manifest { return manifestsOf(p.Actions) }

func manifestsOf(actions []Action) []Manifest {
	var all []Manifest
	for _, a := range actions {
		if a.Kind == "create" && !a.OnObjects() {
			all = append(all, a.Manifest())
		}
	}
	return all
}

func (v *validator) setup(created map[string]bool) {
	for i := range v.s.Setup {
		a, path := &v.s.Setup[i], fmt.Sprintf("setup[%d]", i)
		if a.Kind != "create" {
			v.fail(path+".kind", "setup accepts only kind: create; put other actions into a phase", "setup does not accept an action of kind %q", a.Kind)
			continue
		}
		v.deployShape(path, a)
		v.creation(path, a, created)
	}
}

// creation checks a create action. created holds the objects that earlier actions create, as "KIND NAME".
func (v *validator) creation(path string, a *Action, created map[string]bool) {
	if a.Count != 0 {
		v.between(path+".count", float64(a.Count), 1, maxCreated)
	}
	path += ".object"
	m := a.Manifest()
	object, ok := v.manifestFields(path, m.object(0).Object)
	if !ok {
		return
	}
	switch {
	case m.Kind == "":
		v.fail(path, creatableHint(object["kind"]), "an action cannot create the kind %v of apiVersion %v", object["kind"], object["apiVersion"])
		return
	case m.Name == "":
		v.fail(path+".metadata.name", "write metadata: {name: tenants}", "is missing")
		return
	case slices.Contains(upstreamObjects[m.Kind], m.Name):
		v.fail(path+".metadata.name", "choose another name", "every API server already has a %s", m)
	case created[m.String()]:
		v.fail(path+".metadata.name", "create each object once", "%s appears twice", m)
	case m.Count > 1 && !strings.Contains(m.Name, numberMark):
		v.fail(path+".metadata.name", "write "+m.Name+"-"+numberMark, "%d objects would have the same name", m.Count)
	}
	if m.WantsConversion() && !v.s.ControlPlane.APIServer.Converts() {
		v.fail(path+".spec.conversion", "set controlPlane.apiServer.conversionWebhook: on, or name a webhook here", "%s requires a conversion webhook", m)
	}
	created[m.String()] = true
	// API servers accept a reference to a missing object, and would hide this mistake: a FlowSchema without its
	// priority level matches no request, and a binding without its policy checks nothing.
	for _, r := range references {
		if r.kind != m.Kind {
			continue
		}
		name, _, _ := unstructured.NestedString(object, r.field...)
		v.existing(path+"."+strings.Join(r.field, "."), r.what, r.to, name, created)
	}
}

// creatableHint returns a hint with the apiVersion of the kind. If actions cannot create the kind, the hint lists the
// kinds that they can create.
func creatableHint(kind any) string {
	var known []string
	for _, c := range Creatables() {
		if c.Kind == kind {
			return fmt.Sprintf("write apiVersion: %s", c.Resource.GroupVersion())
		}
		known = append(known, c.Kind)
	}
	slices.Sort(known)
	return strictyaml.Hint(fmt.Sprint(kind), known, "actions can create "+strings.Join(known, ", "))
}

// maxCreated is the maximum number of objects of one action. A higher number counts as a mistake.
const maxCreated = 100_000

var references = []struct {
	kind     string
	field    []string
	what, to string
}{
	{"FlowSchema", []string{"spec", "priorityLevelConfiguration", "name"}, "priority level", "PriorityLevelConfiguration"},
	{"ValidatingAdmissionPolicyBinding", []string{"spec", "policyName"}, "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicy"},
	{"MutatingAdmissionPolicyBinding", []string{"spec", "policyName"}, "MutatingAdmissionPolicy", "MutatingAdmissionPolicy"},
}

// existing reports an error if an action refers to an object that neither the API server nor an earlier action creates.
func (v *validator) existing(path, what, kind, name string, created map[string]bool) {
	if slices.Contains(upstreamObjects[kind], name) || created[kind+" "+name] {
		return
	}
	known := slices.Clone(upstreamObjects[kind])
	for _, other := range slices.Sorted(maps.Keys(created)) {
		if own, ok := strings.CutPrefix(other, kind+" "); ok {
			known = append(known, own)
		}
	}
	v.fail(path, strictyaml.Hint(name, known, "create it earlier, or use one of "+strings.Join(known, ", ")), "unknown %s %q", what, name)
}

// metadataKey checks the name of a label or annotation of namespaces, and reports whether it is valid. `what` is "a
// label" or "an annotation".
func (v *validator) metadataKey(path, what, key string) bool {
	prefix, _, _ := strings.Cut(key, "/")
	switch {
	case len(validation.IsQualifiedName(key)) > 0:
		v.fail(path, "for example pod-security.kubernetes.io/enforce", "%q is not %s name", key, what)
	case strings.HasSuffix(prefix, "stormglass.dev"):
		v.fail(path, "leave it out", "only the run itself may set labels and annotations of stormglass.dev")
	default:
		return true
	}
	return false
}

// podSecurityModes are the modes in the names of a namespace's Pod Security labels. podSecurityLevels are the values of
// these labels.
var (
	podSecurityModes  = []string{"enforce", "audit", "warn"}
	podSecurityLevels = []string{"privileged", "baseline", "restricted"}
)

// namespaceLabels checks labels of namespaces. It refuses unknown Pod Security labels, which the API server would
// accept and ignore.
func (v *validator) namespaceLabels(path string, labels map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(labels)) {
		path, value := path+"."+key, labels[key]
		prefix, name, _ := strings.Cut(key, "/")
		mode, version := strings.CutSuffix(name, "-version")
		switch {
		case !v.metadataKey(path, "a label", key):
		case len(validation.IsValidLabelValue(value)) > 0:
			v.fail(path, "letters, digits, -, _ and ., at most 63", "%q is not a label value", value)
		case prefix != "pod-security.kubernetes.io":
		case !slices.Contains(podSecurityModes, mode):
			v.fail(path, strictyaml.Hint(mode, podSecurityModes, "one of "+strings.Join(podSecurityModes, ", ")), "unknown Pod Security mode %q", mode)
		case !version:
			v.oneOf(path, value, podSecurityLevels...)
		}
	}
}
