package scenario

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/stormglass/stormglass/internal/strictyaml"
)

// NamespaceGroup is a group of namespaces to which manifests can refer by name.
type NamespaceGroup struct {
	// Name: name of the group and its only namespace; with `count`, the namespaces are NAME-0, NAME-1, ...
	Name        string            `yaml:"name"`
	Count       int               `yaml:"count,omitempty" zero:"one namespace NAME"` // number of namespaces of the group
	Labels      map[string]string `yaml:"labels,omitempty"`                          // labels of the namespaces; they override `namespaceLabels`
	Annotations map[string]string `yaml:"annotations,omitempty"`                     // annotations of the namespaces
}

// Names returns the names of the group's namespaces.
func (g *NamespaceGroup) Names() []string {
	if g.Count == 0 {
		return []string{g.Name}
	}
	all := make([]string, max(g.Count, 0))
	for i := range all {
		all[i] = fmt.Sprintf("%s-%d", g.Name, i)
	}
	return all
}

// Unusable returns why a run cannot create namespaces with the group's name, and a hint. Both are "" if it can.
func (g *NamespaceGroup) Unusable() (why, hint string) {
	last := g.Name
	if g.Count > 0 {
		last = fmt.Sprintf("%s-%d", g.Name, g.Count-1)
	}
	switch {
	case g.Name == "":
		return "is missing", "write name: web"
	case len(validation.IsDNS1123Label(last)) > 0:
		return fmt.Sprintf("%q is not a namespace name", last), "lower-case letters, digits and -, at most 63"
	case slices.Contains([]string{"default", "kube-system", "kube-public", "kube-node-lease"}, last):
		return fmt.Sprintf("every cluster already has a namespace %s", last), "choose another name"
	case strings.HasPrefix(last, "stormglass"):
		return "names that begin with stormglass are for the run's other namespaces", "choose another name"
	}
	return "", ""
}

// NamespaceGroup returns the group with the given name, or nil.
func (s *Scenario) NamespaceGroup(name string) *NamespaceGroup {
	for i := range s.Namespaces {
		if s.Namespaces[i].Name == name {
			return &s.Namespaces[i]
		}
	}
	return nil
}

// BatchNamespaces returns the namespaces of all batches. The first is `run`, the run's own namespace. The namespaces of
// groups come last.
func (s *Scenario) BatchNamespaces(run string) []string {
	most := 1
	for _, b := range s.Batches() {
		if b.NamespaceGroup == "" {
			most = max(most, b.Namespaces)
		}
	}
	all := []string{run}
	for i := 1; i < most; i++ {
		all = append(all, fmt.Sprintf("%s-%d", run, i))
	}
	for i := range s.Namespaces {
		all = append(all, s.Namespaces[i].Names()...)
	}
	return all
}

// groupIndexes maps each namespace of a group to its index in BatchNamespaces. It returns nil if there are no groups.
func (s *Scenario) groupIndexes() map[string]int {
	if len(s.Namespaces) == 0 {
		return nil
	}
	indexes := map[string]int{}
	for i, name := range s.BatchNamespaces("") {
		indexes[name] = i
	}
	return indexes
}

// spreadBatches sets the number of namespaces of batches that have iterationsPerNamespace or a group.
func (s *Scenario) spreadBatches() {
	for i := range s.Objects {
		s.Objects[i].spread(s)
	}
	for _, a := range s.objectActions() {
		a.spread(s)
	}
	for _, l := range s.Loads() {
		if b := l.Batch(); b.Has() {
			b.spread(s)
			l.Namespaces = b.Namespaces
		}
	}
}

// spread sets the number of namespaces of the batch, unless the scenario sets it. With iterationsPerNamespace, the
// iterations determine the number. Otherwise a batch with a group uses all namespaces of the group, or one for each
// iteration if there are fewer iterations.
func (b *Batch) spread(s *Scenario) {
	g := s.NamespaceGroup(b.NamespaceGroup)
	switch {
	case b.Namespaces != 0:
	case b.IterationsPerNamespace > 0 && b.Iterations > 0:
		b.Namespaces = b.filled()
	case g != nil && b.Iterations > 0:
		b.Namespaces = min(len(g.Names()), b.Iterations)
	case g != nil:
		b.Namespaces = len(g.Names())
	}
}

// filled returns the number of namespaces needed with IterationsPerNamespace iterations in each; 0 if that is not set.
func (b *Batch) filled() int {
	if b.IterationsPerNamespace <= 0 {
		return 0
	}
	return (b.Iterations + b.IterationsPerNamespace - 1) / b.IterationsPerNamespace
}

// namespace returns the index in Scenario.BatchNamespaces of an object's namespace: the namespace in the manifest if
// that belongs to a group, otherwise the namespace of the iteration.
func (o *Objects) namespace(manifest map[string]any, iteration int) int {
	meta, _ := manifest["metadata"].(map[string]any)
	if name, _ := meta["namespace"].(string); name != "" {
		if at, ok := o.indexes[name]; ok {
			return at
		}
	}
	if per := o.batch.IterationsPerNamespace; per > 0 {
		return o.first + iteration/per
	}
	return o.first + iteration*o.batch.Namespaces/o.batch.Iterations
}

// namespaceGroups checks the groups of namespaces.
func (v *validator) namespaceGroups() {
	groups, taken := map[string]bool{}, map[string]string{}
	for i := range v.s.Namespaces {
		g, path := &v.s.Namespaces[i], fmt.Sprintf("namespaces[%d]", i)
		v.between(path+".count", float64(g.Count), 0, maxBatchNamespaces)
		v.unique(path, "group", g.Name, "give each group a unique name", groups)
		if why, hint := g.Unusable(); why != "" {
			v.fail(path+".name", hint, "%s", why)
		}
		for _, name := range g.Names() {
			if other := taken[name]; other != "" && other != g.Name {
				v.fail(path+".name", "rename one of the groups", "group %q also has a namespace %s", other, name)
				break
			}
			taken[name] = g.Name
		}
		v.namespaceLabels(path+".labels", g.Labels)
		for _, key := range slices.Sorted(maps.Keys(g.Annotations)) {
			v.metadataKey(path+".annotations."+key, "an annotation", key)
		}
	}
}

// namespaceGroup checks a reference to a group, and returns the group, or nil.
func (v *validator) namespaceGroup(path, name string) *NamespaceGroup {
	g := v.s.NamespaceGroup(name)
	if name != "" && g == nil {
		known := namesOf(v.s.Namespaces, func(g NamespaceGroup) string { return g.Name })
		v.fail(path+".namespaceGroup", strictyaml.Hint(name, known, "add it to namespaces: at the top of the scenario"), "unknown group of namespaces %q", name)
	}
	return g
}

// batchNamespaces checks over which namespaces a batch spreads its iterations.
func (v *validator) batchNamespaces(path string, b *Batch) {
	v.between(path+".namespaces", float64(b.Namespaces), 1, maxBatchNamespaces)
	v.between(path+".iterationsPerNamespace", float64(b.IterationsPerNamespace), 0, maxBatch)
	g := v.namespaceGroup(path, b.NamespaceGroup)
	switch {
	case g != nil && b.Namespaces > len(g.Names()) && b.Namespaces == b.filled():
		v.fail(path+".iterationsPerNamespace", "increase it, or the count of the group", "%d iterations need %d namespaces, but group %q has %d", b.Iterations, b.Namespaces, g.Name, len(g.Names()))
	case g != nil && b.Namespaces > len(g.Names()):
		v.fail(path+".namespaces", fmt.Sprintf("at most %d, or increase the count of the group", len(g.Names())), "%d namespaces are too many: group %q has %d", b.Namespaces, g.Name, len(g.Names()))
	case b.IterationsPerNamespace > 0 && b.Namespaces != b.filled():
		v.fail(path+".namespaces", "leave it out, or leave out iterationsPerNamespace", "%d iterations fill %d namespaces, not %d", b.Iterations, b.filled(), b.Namespaces)
	case b.Iterations < b.Namespaces:
		v.fail(path+".iterations", fmt.Sprintf("use at least %d iterations, or fewer namespaces", b.Namespaces), "%d iterations are too few for %d namespaces: some namespaces would stay empty", b.Iterations, b.Namespaces)
	}
}
