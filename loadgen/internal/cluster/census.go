package cluster

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/objects"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
	"github.com/stormglass/stormglass/loadgen/internal/workload"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// census simulates which objects exist during the phases: objects from templates, from deploy actions and from loads.
// It thereby forecasts the objects that actions select and create, and the requests that they send.
type census struct {
	forecast
	there   map[string]map[string]labels.Set // labels of the existing objects, by resource, then by namespace and name
	open    map[string]bool                  // resources that may have more objects than the field `there` contains
	coming  map[string][]labels.Set          // labels of objects that loads create and delete during phases, by resource
	batches map[string][]member              // objects of each batch, by the path of the batch in the scenario
	deploys map[string]scenario.Action       // deploy actions by workload name
	unnamed int                              // number of objects with generated names so far
	looked  int                              // number of objects examined so far
}

type member struct {
	resource, kind string
	key            string // namespace and name; ends with a slash if the API server generates the name
	namespaced     bool
	labels         labels.Set
	count          int // number of objects of this kind in the batch
}

const (
	// maxMembers is the size of the largest batch for which the census renders every object from its template.
	maxMembers = 50_000
	// maxLooked limits census.looked, and so the time of a forecast. If the census examines more objects, it reports
	// the effects of actions as unknown.
	maxLooked = 2_000_000
)

// controlled lists the resources whose objects controllers create on their own. It also lists nodes and namespaces,
// because the setup of a run adds labels to them.
var controlled = []string{"events", "events.events.k8s.io", "endpoints", "endpointslices.discovery.k8s.io", "namespaces", "nodes"}

// ofWorkloads are the resources whose objects controllers create for workloads.
var ofWorkloads = []string{"pods", "replicasets.apps", "controllerrevisions.apps", "jobs.batch", "resourceclaims.resource.k8s.io"}

func newCensus(f forecast) *census {
	c := &census{forecast: f, there: map[string]map[string]labels.Set{}, open: map[string]bool{}, coming: map[string][]labels.Set{}, batches: map[string][]member{}, deploys: map[string]scenario.Action{}}
	for _, resource := range controlled {
		c.open[resource] = true
	}
	for _, l := range f.s.Loads {
		c.load(l)
	}
	return c
}

// load adds the objects that a load creates before the phases, and records the labels of objects that the load's
// requests create and delete.
func (c *census) load(l plan.Load) {
	of := c.labelled(map[string]any{load.LoadLabel: l.Name})
	for _, o := range l.Operations() {
		if o.Verb == "create" && o.Subresource == "" || strings.HasPrefix(o.Verb, "delete") || o.Subresource == "eviction" || l.Namespaces > 1 {
			c.coming[o.Resource] = append(c.coming[o.Resource], of)
		}
	}
	for resource := range madeBy(l.Load) {
		for i := range l.Objects {
			c.add(resource, fmt.Sprintf("0/%s-%d", l.Name, i), of)
		}
	}
	if l.Recorded != nil {
		for _, shape := range l.Recorded.Shapes {
			c.coming[shape.GroupResource()] = append(c.coming[shape.GroupResource()], of)
		}
	}
}

func (c *census) labelled(own map[string]any) labels.Set {
	all := labels.Set{}
	for key, value := range own {
		all[key] = fmt.Sprint(value)
	}
	maps.Copy(all, c.t.Labels)
	return all
}

// add adds an object. It returns false if the object exists already.
func (c *census) add(resource, key string, of labels.Set) bool {
	if _, there := c.there[resource][key]; there {
		return false
	}
	if c.there[resource] == nil {
		c.there[resource] = map[string]labels.Set{}
	}
	c.there[resource][key] = of
	return true
}

// manifest adds the objects of a manifest to the existing objects. It does not count them, because forecast.manifests
// counts them.
func (c *census) manifest(m scenario.Manifest) {
	namespaces := len(c.t.BatchNamespaces())
	if !m.Namespaced {
		namespaces = 1
	}
	for _, one := range m.Objects() {
		meta, _ := one.Object["metadata"].(map[string]any)
		own, _ := meta["labels"].(map[string]any)
		of := c.labelled(own)
		maps.Copy(of, c.t.meta("").Labels)
		for i := range namespaces {
			key := "/" + one.Name
			if m.Namespaced {
				key = fmt.Sprint(i) + key
			}
			c.add(m.Resource.GroupResource().String(), key, of)
		}
	}
}

// run adds to the forecast the objects and requests of all batches and actions.
func (c *census) run() {
	for _, m := range c.s.SetupManifests() {
		c.manifest(m)
	}
	for i := range c.s.Objects {
		c.make(c.s.Batches[i], scenario.Action{Kind: "create"}, "setup", plan.Exact, math.MaxInt)
	}
	for i := range c.s.Phases {
		c.phase(&c.s.Phases[i])
	}
	for i := range c.s.Teardown {
		c.act(&c.s.Teardown[i], scenario.Teardown, fmt.Sprintf("teardown[%d]", i), plan.Exact, math.MaxInt)
	}
}

func (c *census) batch(path string) plan.Batch {
	return c.s.Batches[slices.IndexFunc(c.s.Batches, func(b plan.Batch) bool { return b.Path == path })]
}

// phase simulates the actions of a phase: first the actions at its start, in order, then the later actions at their
// times.
func (c *census) phase(p *scenario.Phase) {
	for _, l := range c.s.Loads {
		if l.Phase == p.Name && l.Batch().Has() {
			_, how := c.s.Arrivals(l)
			members, kinds := c.members(c.batch(l.Path))
			for _, m := range kinds {
				c.open[m.resource] = c.open[m.resource] || how != plan.Exact || members == nil
				c.controllers(m.kind)
			}
			for _, m := range members {
				c.add(m.resource, m.key, m.labels)
			}
		}
	}
	path := func(i int) string {
		return fmt.Sprintf("phases[%d].actions[%d]", slices.Index(c.s.PhaseNames(), p.Name), i)
	}
	length, ends, next := plan.LongestOf(*p), plan.Ending(*p), map[int]time.Duration{}
	for i := range p.Actions {
		if a := &p.Actions[i]; a.Later() {
			next[i] = a.After.D()
		} else {
			c.act(a, p.Name, path(i), plan.Exact, math.MaxInt)
		}
	}
	for len(next) > 0 {
		i := slices.MinFunc(slices.Sorted(maps.Keys(next)), func(a, b int) int { return int(next[a] - next[b]) })
		a, at := &p.Actions[i], next[i]
		if at > length-plan.LastRound {
			delete(next, i)
			continue
		}
		how, rate, most := ends, float64(a.Rate), math.MaxInt
		if ends == plan.About {
			how = plan.Exact // the number of rounds is fixed
		}
		if rate > 0 { // another action may change or remove the same objects at the same time
			how = how.Or(plan.AtMost)
			most = int((length-at).Seconds()*rate) + 1 // the first request is sent immediately
		}
		if c.looked > maxLooked {
			how = plan.Unknown // the number of requests in the remaining rounds is unknown too
		}
		sent := c.act(a, p.Name, path(i), how, most)
		if a.Every == 0 || how == plan.Unknown {
			delete(next, i)
			continue
		}
		over := at
		if rate > 0 {
			over += time.Duration(float64(sent-1) / rate * float64(time.Second))
		}
		for next[i] += a.Every.D(); next[i] <= over; next[i] += a.Every.D() { // the run skips late rounds
		}
	}
}

// act simulates one execution of an action, and returns the number of its requests. `how` is the certainty of this
// number, and `most` is its maximum.
func (c *census) act(a *scenario.Action, phase, path string, how plan.Certainty, most int) int {
	switch {
	case a.Has():
		return c.make(c.batch(path), *a, phase, how, most)
	case a.OnObjects():
		return c.target(a, phase, how, most)
	case a.Kind == "create":
		c.manifest(a.Manifest())
	case a.Kind != "custom" && a.Kind != "demand":
		for _, x := range a.Each() {
			c.workload(x, "action "+a.Kind+" "+a.Name, phase)
		}
	}
	return 0
}

// members returns the objects of a batch (objects from a template) and, as `kinds`, one object of each kind. It returns
// no members if the batch has more than maxMembers.
func (c *census) members(b plan.Batch) (members, kinds []member) {
	all := b.Expanded
	for _, k := range all.Kinds() {
		kinds = append(kinds, c.member(k))
	}
	if known, ok := c.batches[b.Path]; ok || all.Len() > maxMembers {
		return known, kinds
	}
	for i := range all.Len() {
		o, err := all.At(i)
		if err != nil {
			return nil, kinds
		}
		m := kinds[all.KindAt(i)]
		meta, _ := o.Manifest["metadata"].(map[string]any)
		own, _ := meta["labels"].(map[string]any)
		m.key, m.labels = "/"+o.Name, c.labelled(own)
		if m.namespaced {
			m.key = fmt.Sprint(o.Namespace) + m.key
		}
		members = append(members, m)
	}
	c.batches[b.Path] = members
	return members, kinds
}

func (c *census) member(k scenario.ObjectKind) member {
	m := member{resource: builtin.ResourceOf(k.APIVersion, k.Kind), kind: k.Kind, namespaced: true, count: k.Count}
	gv, err := schema.ParseGroupVersion(k.APIVersion)
	if err != nil {
		return m
	}
	if r, namespaced, ok, err := c.look.resourceOf(gv.WithKind(k.Kind)); ok && err == nil {
		m.resource, m.namespaced = r.String(), namespaced
	}
	return m
}

// workloadKinds are the kinds of workload, including kinds that only templates create.
var workloadKinds = []string{scenario.Deployment, scenario.StatefulSet, scenario.DaemonSet, scenario.Job, scenario.CronJob, "ReplicaSet", "ReplicationController"}

// controllers records that controllers create further objects, such as pods, if kind is the kind of a workload.
func (c *census) controllers(kind string) {
	if slices.Contains(workloadKinds, kind) {
		for _, resource := range ofWorkloads {
			c.open[resource] = true
		}
	}
}

// make simulates an action that creates or applies the objects of a batch, and returns the number of its requests.
// `how` and `most` are as in act.
func (c *census) make(b plan.Batch, a scenario.Action, phase string, how plan.Certainty, most int) int {
	row := func(m member, verb string, n int) {
		c.sends(PreviewRequests{Load: "action " + a.Kind, Phase: phase, Verb: verb, Resource: m.resource, PeakPerSecond: float64(a.Rate), Total: int64(n), Certainty: how})
	}
	created := func(m member, n int) {
		where := inCluster
		if m.namespaced {
			where = inRun
		}
		c.creates(m.kind, n, how, where, "of "+b.Path)
		c.controllers(m.kind)
	}
	members, kinds := c.members(b)
	if a.OnlyMissing {
		for _, m := range kinds {
			c.lists("action "+a.Kind, phase, scenario.Selection{Resource: m.resource}, how)
		}
	}
	if members == nil { // the batch has too many objects to simulate them one by one
		if a.OnlyMissing {
			how = plan.Unknown
		}
		sent := 0
		for _, m := range kinds {
			c.open[m.resource] = true
			sent += m.count
			row(m, a.Kind, m.count)
			created(m, m.count)
		}
		return sent
	}
	c.looked += len(members) + 1
	sent, definitions := 0, map[string]bool{}
	for _, m := range members {
		defines := m.kind == scenario.DefinitionKind
		_, there := c.there[m.resource][m.key]
		if defines && definitions[m.key] || there && a.OnlyMissing || sent == most {
			continue // every iteration contains the definition, but the run sends it only once
		}
		if definitions[m.key] = defines; strings.HasSuffix(m.key, "/") {
			c.unnamed++
			m.key += fmt.Sprint(c.unnamed)
		}
		sent++
		row(m, a.Kind, 1)
		if c.add(m.resource, m.key, m.labels) {
			created(m, 1)
		}
	}
	return sent
}

// matching returns the keys of the objects of a resource that a label selector matches, and how certain the result is.
func (c *census) matching(resource, labelSelector string) ([]string, plan.Certainty) {
	selector, err := labels.Parse(labelSelector)
	if err != nil || c.open[resource] || slices.ContainsFunc(c.coming[resource], func(of labels.Set) bool { return selector.Matches(of) }) {
		return nil, plan.Unknown
	}
	var keys []string
	c.looked += len(c.there[resource]) + 1
	for _, key := range slices.Sorted(maps.Keys(c.there[resource])) {
		if selector.Matches(c.there[resource][key]) {
			keys = append(keys, key)
		}
	}
	return keys, plan.Exact
}

// namespacesOf returns how many collections an action lists to find the selected objects: one for each namespace of the
// selection's namespace group or, without a group, of the batches. For a cluster-scoped resource it returns 1.
func (c *census) namespacesOf(s scenario.Selection) int {
	if c.where(s.Resource) == inCluster {
		return 1
	}
	if g := c.s.NamespaceGroup(s.NamespaceGroup); g != nil {
		return len(g.Names())
	}
	return len(c.t.BatchNamespaces())
}

// lists adds to the forecast the list requests that an action sends to find its objects. It returns the keys of these
// objects, and how certain they are.
func (c *census) lists(name, phase string, s scenario.Selection, how plan.Certainty) ([]string, plan.Certainty) {
	keys, known := c.matching(s.Resource, s.LabelSelector)
	if g := c.s.NamespaceGroup(s.NamespaceGroup); g != nil {
		all, names := c.t.BatchNamespaces(), g.Names()
		first := slices.Index(all, names[0])
		keys = slices.DeleteFunc(keys, func(key string) bool {
			namespace, _, _ := strings.Cut(key, "/")
			at, err := strconv.Atoi(namespace)
			return err == nil && (at < first || at >= first+len(names))
		})
	}
	if known == plan.Unknown {
		how = how.Or(plan.AtLeast) // at least one page for each namespace
	}
	in := map[string]int{}
	for _, key := range keys {
		namespace, _, _ := strings.Cut(key, "/")
		in[namespace]++
	}
	pages := c.namespacesOf(s)
	for _, n := range in {
		pages += (n - 1) / objects.ListPage
	}
	c.sends(PreviewRequests{Load: name, Phase: phase, Verb: "list", Resource: s.Resource, Total: int64(pages), Certainty: how})
	return keys, known
}

// target simulates an action on the objects that its target selects, and returns the number of its requests. `how` and
// `most` are as in act.
func (c *census) target(a *scenario.Action, phase string, how plan.Certainty, most int) int {
	resource := a.Target.Resource
	name := "action " + a.Kind + " " + resource
	keys, known := c.lists(name, phase, a.Target, how)
	keys = slices.DeleteFunc(keys, func(key string) bool {
		_, own, _ := strings.Cut(key, "/")
		return len(a.Target.Names) > 0 && !slices.Contains(a.Target.Names, own)
	})
	how = how.Or(known)
	sent := min(a.Target.Of(len(keys)), most)
	if a.Kind == "delete" || a.Kind == "evict" {
		for _, key := range keys[:sent] {
			delete(c.there[resource], key)
		}
	}
	verb, subresource := a.Request()
	if verb == "deletecollection" {
		sent = min(len(keys), 1) * c.namespacesOf(a.Target)
	}
	of := strings.TrimSuffix(resource+"/"+subresource, "/")
	c.sends(PreviewRequests{Load: name, Phase: phase, Verb: verb, Resource: of, PeakPerSecond: float64(a.Rate), Total: int64(sent), Certainty: how})
	return sent
}

func (c *census) workload(a scenario.Action, name, phase string) {
	deploy := c.deploys[a.Name]
	if a.Kind == "deploy" {
		deploy = a
		c.deploys[a.Name] = a
	}
	own := builtin.ResourceOf("apps/v1", deploy.WorkloadKind())
	if kind := deploy.WorkloadKind(); kind == scenario.Job || kind == scenario.CronJob {
		own = builtin.ResourceOf("batch/v1", kind)
	}
	all := []string{own}
	if a.Kind == "deploy" || a.Kind == "delete" {
		for _, kind := range companionsOf(deploy) {
			all = append(all, companionResources[kind])
		}
	}
	if a.Kind == "delete" && !slices.Contains(all, "services") { // the request is sent even if there is no Service
		all = append(all, "services")
	}
	verb := map[string]string{"deploy": "apply", "delete": "delete"}[a.Kind]
	if verb == "" {
		verb = "patch"
	}
	for _, resource := range all {
		c.sends(PreviewRequests{Load: name, Phase: phase, Verb: verb, Resource: resource, Total: 1})
		switch key := "0/" + a.Name; a.Kind {
		case "deploy":
			c.add(resource, key, c.labelled(map[string]any{workload.DeploymentLabel: a.Name}))
		case "delete":
			delete(c.there[resource], key)
		}
	}
	c.controllers(deploy.WorkloadKind())
}

var companionResources = map[string]string{
	"Service": "services", "PodGroup": "podgroups.scheduling.k8s.io", "ResourceClaimTemplate": "resourceclaimtemplates.resource.k8s.io",
	"HorizontalPodAutoscaler": "horizontalpodautoscalers.autoscaling",
}
