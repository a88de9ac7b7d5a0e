package scenario

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
)

// Selection selects objects in the run's namespaces.
type Selection struct {
	// Resource: resource of the objects, such as "deployments.apps" or a custom resource
	Resource string `yaml:"resource,omitempty"`
	// Names: names of the objects, default all
	Names []string `yaml:"names,omitempty" zero:"all; leave it out to use the default"`
	// NamespaceGroup: namespace group of the objects, default all namespaces of the run
	NamespaceGroup string `yaml:"namespaceGroup,omitempty"`
	// LabelSelector: label selector of the objects, such as "app=web,tier!=cache", default all
	LabelSelector string `yaml:"labelSelector,omitempty"`
	// Share: fraction of the matching objects to select, such as 10%; default all
	Share *Bound `yaml:"share,omitempty"`
	// Order: which objects `share` selects: "random" (default) or "oldest" (by creationTimestamp)
	Order string `yaml:"order,omitempty"`
	// AtLeast: minimum number of objects that must match, before `share` applies; fewer matches are an error. Default:
	// only a warning if no object matches
	AtLeast int `yaml:"atLeast,omitempty"`
}

// PatchTypes maps the names of patch types to their media types.
var PatchTypes = map[string]string{
	"merge": "application/merge-patch+json", "json": "application/json-patch+json",
	"strategic": "application/strategic-merge-patch+json", "apply": "application/apply-patch+yaml",
}

// propagationPolicies lists the deletion propagation policies that an action may set.
var propagationPolicies = []string{"Background", "Foreground", "Orphan"}

// OnObjects reports whether the action has a target or templates, and so works on objects of any resource.
func (a *Action) OnObjects() bool {
	return a.Has() || a.Target.Resource != "" || slices.Contains([]string{"apply", "patch", "evict", "restart", "exec"}, a.Kind)
}

// restartable lists the resources for which a restart annotates the pod template, as kubectl rollout restart does.
var restartable = []string{"deployments.apps", "statefulsets.apps", "daemonsets.apps"}

func (v *validator) objectAction(path string, a *Action) {
	v.onlyFor(path, a.Kind, []field{
		{"templates", a.Has(), "create apply"}, {"iterations", a.Iterations != 0, "create apply"}, {"namespaces", a.Namespaces != 0, "create apply"},
		{"namespaceGroup", a.NamespaceGroup != "", "create apply"}, {"iterationsPerNamespace", a.IterationsPerNamespace != 0, "create apply"},
		{"fromIteration", a.FromIteration != 0, "create apply"}, {"toIteration", a.ToIteration != 0, "create apply"},
		{"vars", len(a.Vars) > 0, "create apply patch"}, {"placement", a.Placement != "", "create apply"},
		{"target", a.Target.set(), "patch delete evict scale restart exec"}, {"patch", a.Patch != nil, "patch"}, {"patchType", a.PatchType != "", "patch"},
		{"subresource", a.Subresource != "", "patch"}, {"propagation", a.Propagation != "", "delete"}, {"collection", a.Collection, "delete"},
		{"replicas", a.Replicas != 0, "scale"}, {"onlyMissing", a.OnlyMissing, "create"},
		{"command", len(a.Command) > 0, "exec"},
	})
	for _, f := range a.workloadFields(v.s.recorded) {
		if f.set && f.name != "replicas" && f.name != "every" {
			v.fail(path+"."+f.name, "leave it out, or set it in a template or the target; only actions on deployed workloads have this field", "this field has no effect in %s", a.Kind)
		}
	}
	if a.Rate > MaxRate {
		v.fail(path+".rate", fmt.Sprintf("at most %d/s", MaxRate), "%s is too high: one machine cannot send this many requests", a.Rate)
	}
	if a.Kind == "create" || a.Kind == "apply" {
		if !a.Has() {
			v.fail(path+".templates", "write templates: [{file: web.yaml, replicas: 100}]", "is missing")
			return
		}
		v.batch(path, &a.Batch)
		return
	}
	v.selection(path+".target", a.Kind, &a.Target)
	switch a.Kind {
	case "patch":
		v.patch(path, a)
	case "scale":
		v.between(path+".replicas", float64(a.Replicas), 0, maxPods)
		if a.Replicas == 0 && !v.s.recorded && v.s.doc != nil && !v.s.doc.Written(path+".replicas") {
			v.fail(path+".replicas", "write replicas: 100, or replicas: 0 to remove all pods", "the number of replicas is missing")
		}
	case "delete":
		if a.Propagation != "" {
			v.oneOf(path+".propagation", a.Propagation, propagationPolicies...)
		}
		if a.Collection && (len(a.Target.Names) > 0 || a.Target.Share != nil) {
			v.fail(path+".collection", "select by labels, or leave out collection", "collection deletes all selected objects in one request, so it cannot be combined with names or share")
		}
	case "evict", "exec":
		if a.Target.Resource != "pods" && a.Target.Resource != "" {
			v.fail(path+".target.resource", "write resource: pods", "%s does not support %s", a.Kind, a.Target.Resource)
		}
		if a.Kind == "exec" && len(a.Command) == 0 {
			v.fail(path+".command", "write command: [cat, /etc/hostname]", "is missing")
		}
	case "restart":
		if !slices.Contains(restartable, a.Target.Resource) {
			v.fail(path+".target.resource", "one of "+strings.Join(restartable, ", "), "restart does not support %s", a.Target.Resource)
		}
	}
}

type placedAction struct {
	*Action
	in, path string // in is the phase's name or "teardown"; path is the path in the scenario
	phase    int    // index of the action's phase; len(Phases) for the teardown
}

func (s *Scenario) objectActions() []placedAction {
	var all []placedAction
	for i := range s.Phases {
		p := &s.Phases[i]
		for j := range p.Actions {
			all = append(all, placedAction{&p.Actions[j], p.Name, fmt.Sprintf("phases[%d].actions[%d]", i, j), i})
		}
	}
	for i := range s.Teardown {
		all = append(all, placedAction{&s.Teardown[i], Teardown, fmt.Sprintf("teardown[%d]", i), len(s.Phases)})
	}
	return slices.DeleteFunc(all, func(a placedAction) bool { return !a.OnObjects() })
}

// batchVerbs returns the RBAC verbs, separated by spaces, that the action needs to create the objects of its templates.
func (a *Action) batchVerbs() string {
	switch {
	case a.Kind == "apply":
		return "create patch"
	case a.OnlyMissing:
		return "create list"
	}
	return "create"
}

// Verbs returns the RBAC verbs, separated by spaces, that an action on a target needs.
func (a *Action) Verbs() string {
	verb, _ := a.Request()
	if a.Kind == "evict" || a.Kind == "scale" || a.Kind == "exec" {
		verb = "get" // the request itself checks the permission for the subresource
	}
	return "list " + verb
}

// Request returns the verb and the subresource of the requests that an action on a target sends for the selected
// objects.
func (a *Action) Request() (verb, subresource string) {
	switch {
	case a.Kind == "delete" && a.Collection:
		return "deletecollection", ""
	case a.Kind == "delete":
		return "delete", ""
	case a.Kind == "evict":
		return "create", "eviction"
	case a.Kind == "exec":
		return "connect", "exec"
	case a.Kind == "scale":
		return "patch", "scale"
	}
	return "patch", a.Subresource
}

func (v *validator) actionTimes(path string, p *Phase, a *Action) {
	if !a.OnObjects() {
		if a.After != 0 {
			v.fail(path+".after", "leave it out, or put the action into a separate phase", "only actions on objects have this field")
		}
		if a.MinAchieved != nil {
			v.fail(path+".minAchieved", "leave it out", "only actions on objects with a rate have this field")
		}
		return
	}
	v.minAchieved(path+".minAchieved", a.MinAchieved)
	if a.MinAchieved != nil && a.Rate == 0 && a.Every == 0 {
		v.fail(path+".minAchieved", "add rate: 100/s, or leave out this field", "this field requires a rate, but this %s has none", a.Kind)
	}
	length := max(p.For, p.Within)
	if a.After < 0 || length > 0 && a.After >= length {
		v.fail(path+".after", fmt.Sprintf("less than %s", length), "%s is not within phase %q", a.After, p.Name)
	}
	if a.Every != 0 && (a.Every.D() < minActionEvery || length > 0 && a.After+a.Every >= length) {
		v.fail(path+".every", fmt.Sprintf("at least %s; after plus every must be less than the phase's length of %s", Duration(minActionEvery), length), "%s is out of bounds", a.Every)
	}
}

const minActionEvery = time.Second

// Later reports whether the action has After or Every. Such an action does not delay the end of the phase.
func (a *Action) Later() bool { return a.OnObjects() && (a.After > 0 || a.Every > 0) }

// Of returns how many of n matching objects the selection selects.
func (s Selection) Of(n int) int {
	if s.Share == nil || n == 0 {
		return n
	}
	return max(1, int(float64(n)*s.Share.Value+0.5))
}

func (s *Selection) set() bool {
	return s.Resource != "" || len(s.Names) > 0 || s.NamespaceGroup != "" || s.LabelSelector != "" || s.Share != nil || s.Order != "" || s.AtLeast != 0
}

func (v *validator) selection(path, kind string, s *Selection) {
	if s.Resource == "" {
		v.fail(path+".resource", "for example deployments.apps", "%s requires a resource", kind)
		return
	}
	v.resource(path+".resource", s.Resource, strings.Fields((&Action{Kind: kind}).Verbs())...)
	if _, err := labels.Parse(s.LabelSelector); err != nil {
		v.fail(path+".labelSelector", "for example app=web,tier!=cache", "%q is not a label selector", s.LabelSelector)
	}
	if s.Share != nil && (!s.Share.Fits(Ratio) || s.Share.Value <= 0 || s.Share.Value > 1) {
		v.fail(path+".share", "greater than 0% and at most 100%", "%s is not a valid share", s.Share)
	}
	if v.namespaceGroup(path, s.NamespaceGroup) != nil && v.clusterScoped(s.Resource) {
		v.fail(path+".namespaceGroup", "leave it out", "%s have no namespace", s.Resource)
	}
	if s.Order != "" {
		v.oneOf(path+".order", s.Order, "random", "oldest")
		if s.Share == nil {
			v.fail(path+".order", "add share: 10%, or leave out this field", "this field requires a share")
		}
	}
	v.between(path+".atLeast", float64(s.AtLeast), 0, maxBatch)
	for i, name := range s.Names {
		if name == "" || slices.Contains(s.Names[:i], name) {
			v.fail(fmt.Sprintf("%s.names[%d]", path, i), "name each object once", "%q is empty or appears twice", name)
		}
	}
}

func (v *validator) patch(path string, a *Action) {
	if a.PatchType != "" {
		v.oneOf(path+".patchType", a.PatchType, "merge", "json", "strategic", "apply")
	}
	_, list := a.Patch.([]any)
	switch {
	case a.Patch == nil:
		v.fail(path+".patch", "write patch: {metadata: {annotations: {n: '{{.Index}}'}}}", "is missing")
	case list != (a.PatchType == "json"):
		v.fail(path+".patch", "a JSON patch is a list of operations, and any other patch consists of fields", "the patch does not match patchType %s", a.PatchType)
	case a.PatchType == "strategic" && builtin.IsCustom(a.Target.Resource):
		v.fail(path+".patchType", "write merge", "custom resources do not support strategic merge patches")
	case !v.s.recorded:
		v.patchTemplate(path+".patch", a)
	}
}

// batch checks a batch. It also checks the templates, if all of them are in the scenario file.
func (v *validator) batch(path string, b *Batch) {
	before := len(v.errs)
	v.batchShape(path, b)
	if len(v.errs) > before || v.s.recorded || b.inFiles() {
		return // readTemplates reads and checks the files
	}
	if err := v.s.checkBatch(PlacedBatch{Batch: b, Name: "validate", Path: path}); err != nil {
		v.errs = append(v.errs, err)
	}
}

func (b *Batch) inFiles() bool {
	return slices.ContainsFunc(b.Templates, func(t Template) bool { return t.File != "" })
}
