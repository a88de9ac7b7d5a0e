package replay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/internal/load/object"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const configMaps = "configmaps"

// preparer prepares a cluster for a plan: it finds the resources and creates the objects.
type preparer struct {
	*plan
	client *object.Client
	load   string
	labels map[string]string
	drop   bool // whether to omit requests for resources that the API server does not serve
	text   object.Payload

	resources map[string]*object.Resource // resources by name and version; nil if the API server lacks the resource
	templates map[string]*object.Template // templates of the objects, by resource and version
	refusals  map[string]error            // error with which the API server refuses objects, by resource and version
	newest    uint64                      // newest resourceVersion seen
}

func (p *preparer) prepare(ctx context.Context) error {
	for _, s := range p.recording.Shapes {
		if err := p.find(ctx, s.GroupResource(), apiVersion(s)); err != nil {
			return err
		}
	}
	if err := p.find(ctx, configMaps, "v1"); err != nil {
		return err
	}
	if err := p.lacking(); err != nil {
		return err
	}
	named := namedShapes(p.recording)
	for i := range p.actions {
		if err := p.action(ctx, &p.actions[i], named[i]); err != nil {
			return err
		}
	}
	p.schedule()
	var err error
	_, p.newest, err = p.resource(configMaps, "v1").List(ctx, p.namespaces[len(p.namespaces)-1], 1)
	return err
}

func apiVersion(s recording.Shape) string { return strings.TrimPrefix(s.Group+"/"+s.Version, "/") }

// find looks up a resource in the API version that the recording names. If the API server does not serve that version, find
// uses the version that the server prefers.
func (p *preparer) find(ctx context.Context, name, version string) error {
	key := name + " " + version
	if _, known := p.resources[key]; known {
		return nil
	}
	found, err := p.client.Resource(ctx, name, version)
	if errors.As(err, new(*object.UnknownError)) {
		found, err = p.client.Resource(ctx, name, "")
	}
	if errors.As(err, new(*object.UnknownError)) {
		found, err = nil, nil
	}
	p.resources[key] = found
	return err
}

func (p *preparer) resource(name, version string) *object.Resource {
	return p.resources[name+" "+version]
}

// lacking returns an error if the recording uses resources that the API server does not serve, unless p.drop is set.
func (p *preparer) lacking() error {
	if p.drop {
		return nil
	}
	requests, sum := map[string]int{}, 0
	for _, e := range p.recording.Entries {
		s := &p.recording.Shapes[e.Shape]
		if p.resource(s.GroupResource(), apiVersion(*s)) == nil {
			requests[s.GroupResource()]++
			sum++
		}
	}
	if sum == 0 {
		return nil
	}
	var names []string
	for _, name := range slices.Sorted(maps.Keys(requests)) {
		names = append(names, fmt.Sprintf("%s (%d requests)", name, requests[name]))
	}
	return fmt.Errorf("the API server does not have these resources of the recording: %s (to leave out their requests, which are %.3g%% of the recording, set onMissing: drop)",
		strings.Join(names, ", "), 100*float64(sum)/float64(len(p.recording.Entries)))
}

// action decides how to send the requests of a shape. `named` means that at least one of the requests names an object.
func (p *preparer) action(ctx context.Context, act *action, named bool) error {
	s := act.shape
	name, version := s.GroupResource(), apiVersion(s)
	act.resource = p.resource(name, version)
	f := facts{lacking: act.resource == nil}
	if act.resource != nil {
		f.namespaced = act.resource.Namespaced()
	}
	act.decide(f)
	if act.fate == asRecorded && act.resource.Namespaced() && !builtin.IsReview(name) && (s.Writes() || named) {
		refusal, err := p.try(ctx, name, version)
		if err != nil {
			return err
		}
		f.refuses = refusal != nil
		act.decide(f)
	}
	if act.fate == asConfigMap {
		name, version = configMaps, "v1"
		act.resource = p.resource(name, version)
		if refusal, err := p.try(ctx, name, version); err != nil || refusal != nil {
			return errors.Join(err, refusal)
		}
	}
	act.template = p.templates[name+" "+version]
	act.versioned = versioned(name)
	_, known := manifestOf(name)
	class := classOf(s, !known && !slices.Contains(scenario.Manifests, name))
	if act.class = slices.Index(p.classes, class); act.class < 0 {
		act.class = len(p.classes)
		p.classes = append(p.classes, class)
	}
	if act.fate == asRecorded && !s.Writes() && !act.resource.Namespaced() && named {
		var err error
		act.names, _, err = act.resource.List(ctx, "", maxNames)
		return err
	}
	return nil
}

// maxNames is the maximum number of names of existing cluster-scoped objects that the reads of one shape use.
const maxNames = 500

// namedShapes reports, for each shape of the recording, whether any of its requests contains the name of an object.
func namedShapes(t *recording.Recording) []bool {
	named := make([]bool, len(t.Shapes))
	for _, e := range t.Entries {
		named[e.Shape] = named[e.Shape] || e.Object != recording.None
	}
	return named
}

// try creates the template of a resource, unless it exists. It checks with a dry run whether the API server accepts the
// resource's objects. If the API server refuses them, `refusal` is the server's error.
func (p *preparer) try(ctx context.Context, name, version string) (refusal, err error) {
	key := name + " " + version
	if p.templates[key] != nil {
		return p.refusals[key], nil
	}
	r := p.resources[key]
	rest, _ := manifestOf(name)
	t, err := r.Template(rest, p.labels, p.load, p.text)
	if err != nil {
		return nil, err
	}
	p.templates[key] = t
	ns := p.namespaces[0]
	made, err := r.Create(ctx, ns, t.Append(nil, object.Name{Namespace: ns, Stem: "try", Number: 0}, defaultSize, 0, 0), true)
	if err != nil {
		return nil, fmt.Errorf("try to create %s: %w", name, err)
	}
	p.refusals[key] = made.Refusal
	if made.Refusal != nil {
		p.refused = append(p.refused, made.Refusal.Error())
	}
	return made.Refusal, nil
}

// make creates the objects that must exist before the replay, and returns their number. It passes each object's version
// to `learn`.
func (p *preparer) make(ctx context.Context, learn func(object int32, copy int16, version uint64)) (int, error) {
	made, first := p.beforehand()
	if err := p.tryPods(ctx); err != nil {
		return 0, err
	}
	return len(made), load.Parallel(ctx, len(made), func(ctx context.Context, i int) error {
		m := made[i]
		e := &p.recording.Entries[first[m.Object]]
		act := &p.actions[e.Shape]
		name, template := p.name(Arrival{Entry: first[m.Object], Copy: m.Copy}, e, act, 0), act.template
		answer, err := act.resource.Create(ctx, name.Namespace, template.Append(nil, name, cmp.Or(int(m.Size), defaultSize), 0, 0), false)
		switch {
		case err != nil:
			return fmt.Errorf("create %s: %w", act.shape.GroupResource(), err)
		case answer.Refusal != nil && answer.Status != http.StatusConflict: // conflict: the create's response was lost
			return answer.Refusal
		}
		learn(m.Object, m.Copy, answer.Version)
		return nil
	})
}

// tryPods waits until a dry run can create a pod in each namespace. It does nothing if the replay creates no pods.
func (p *preparer) tryPods(ctx context.Context) error {
	template := p.templates["pods v1"]
	if template == nil {
		return nil
	}
	r := p.resource("pods", "v1")
	return load.Parallel(ctx, len(p.namespaces)-1, func(ctx context.Context, i int) error {
		ns := p.namespaces[i]
		answer, err := r.Create(ctx, ns, template.Append(nil, object.Name{Namespace: ns, Stem: "try", Number: 0}, defaultSize, 0, 0), true)
		return errors.Join(err, answer.Refusal)
	})
}
