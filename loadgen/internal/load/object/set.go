package object

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/builtin"
	"github.com/stormglass/stormglass/loadgen/internal/load"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Set manages the objects of one resource that a load creates and uses, named LOAD-0 to LOAD-(n-1). The objects have
// the target's labels and load.LoadLabel, are spread over namespaces, and differ in payload size. The Set is empty if
// the load uses existing objects.
type Set struct {
	asker     *asker
	load      scenario.Load
	name      string // name of the resource
	namespace string // the run's namespace
	labels    map[string]string
	share     load.Share
	count     int  // number of objects, of all workers together
	updates   bool // whether at least one operation is an update
	creates   bool // whether at least one operation is a create
	cluster   bool // whether watches cover all namespaces

	stem, newStem string // name prefixes of the load's own objects and of objects that requests create
	namespaces    []string
	spread        shares
	sizes         []int // payload sizes in letters; set by Prepare
	sized         shares
	drawSize      stream
	payload       payload

	resource *Resource
	manifest *manifest // nil if objects cannot be written
	home     []uint16  // index of the namespace of each object
	paths    []string  // path of the collection, by namespace
	made     body      // body of requests that create or apply an object
	updated  body      // body of updates

	versions []version // version of each object, if updates must name it
	whole    chan int  // numbers of the objects that may be deleted
	gone     chan int  // numbers of deleted objects, to be recreated
	stale    chan int  // numbers of objects whose version must be read again
}

// NewSet returns the Set of a load of kind "watches". It sends nothing.
func NewSet(t load.Target, l scenario.Load) (*Set, error) {
	a, err := newAsker(t.Config)
	if err != nil {
		return nil, err
	}
	s := newSet(a, t, l, l.Resource)
	s.cluster = l.Scope == "cluster"
	if l.OwnObjects(l.Operation) {
		return s, s.own()
	}
	return s, nil
}

func newSet(a *asker, t load.Target, l scenario.Load, name string) *Set {
	if len(l.Sizes) == 0 {
		l.Sizes = []scenario.SizeShare{{Size: l.Size, Weight: 1}}
	}
	var weights []float64
	for _, size := range l.Sizes {
		weights = append(weights, size.Weight)
	}
	labels := map[string]string{}
	maps.Copy(labels, t.Labels)
	s := &Set{
		asker: a, load: l, name: name, namespace: t.Namespace, labels: labels, share: t.Share,
		stem: l.Name + "-", newStem: fmt.Sprintf("%s-new-%d-", l.Name, t.Seed),
		namespaces: l.NamespacesIn(t.Namespace), spread: even(max(l.Namespaces, 1)),
		sized: newShares(weights), drawSize: newStream(t.Seed, l.Name, "size of "+name),
	}
	if l.Spread == "zipf" {
		s.spread = zipf(len(s.namespaces))
	}
	var largest int
	for _, size := range l.Sizes {
		largest = max(largest, inSecret.letters(int(size.Size)))
	}
	s.payload = newPayload(largest, t.Seed)
	return s
}

// own sets the number of objects that the load creates before it starts. It fails if the number is 0 or the run has no
// namespace.
func (s *Set) own() error {
	if s.namespace == "" {
		return errors.New("no namespace for the load's objects")
	}
	if s.count = s.load.Objects; s.count < 1 {
		return fmt.Errorf("no %s for the load to work on (objects is %d)", s.name, s.count)
	}
	return nil
}

// Prepare finds the resource and creates the objects. It applies its manifest to objects that exist already.
func (s *Set) Prepare(ctx context.Context) error {
	defer s.asker.close()
	if err := s.find(ctx); err != nil {
		return err
	}
	return s.makeAll(ctx)
}

func (s *Set) find(ctx context.Context) error {
	if s.name == scenario.WidgetResource {
		if err := defineWidgets(ctx, s.asker, s.labels); err != nil {
			return err
		}
	}
	own, err := s.givenManifest()
	if err != nil {
		return err
	}
	ours, isOurs := builtIn(s.name)
	version := ""
	switch {
	case own != nil:
		version = own.apiVersion
	case isOurs:
		version = ours.apiVersion
	}
	if s.resource, err = resolve(ctx, s.asker, s.name, version); err != nil {
		return err
	}
	switch {
	case own != nil && own.kind == s.resource.kind:
		s.manifest = own
		if builtin.IsReview(s.name) {
			s.manifest.payload = noPlace
		}
	case isOurs:
		s.manifest = &ours
	case s.count > 0:
		return fmt.Errorf("there is no manifest for %s, whose kind is %s (give the load an object of that kind)", s.name, s.resource.kind)
	}
	if !s.resource.namespaced {
		s.namespaces, s.spread = s.namespaces[:1], even(1)
	}
	s.paths = nil // an earlier call may have set them
	for _, ns := range s.namespaces {
		s.paths = append(s.paths, s.resource.collection(ns))
	}
	if s.manifest == nil || s.count == 0 && !s.creates { // no object is written
		return nil
	}
	return s.compile()
}

// givenManifest returns the manifest that the scenario gives for the load's objects. It returns nil if there is no
// manifest, or if the manifest is for another API group.
func (s *Set) givenManifest() (*manifest, error) {
	if s.load.Object == nil {
		return nil, nil
	}
	m, err := given(s.load.Object)
	if err != nil {
		return nil, err
	}
	_, group, _ := strings.Cut(s.name, ".")
	of, _, found := strings.Cut(m.apiVersion, "/")
	if !found {
		of = ""
	}
	if of != group {
		return nil, nil
	}
	return &m, nil
}

func (s *Set) compile() (err error) {
	s.sizes = nil
	for _, size := range s.load.Sizes {
		n := s.manifest.payload.letters(int(size.Size))
		if s.manifest.payload == inAnnotation && n > scenario.AnnotationLimit {
			return fmt.Errorf("%s have their payload in an annotation of at most %d bytes, but the size is %d", s.name, scenario.AnnotationLimit, n)
		}
		s.sizes = append(s.sizes, n)
	}
	s.home = make([]uint16, s.count)
	for i := range s.home {
		s.home[i] = uint16(s.spread.pick((float64(i) + 0.5) / float64(s.count)))
	}
	if s.made, err = s.manifest.compile(s.labels, s.load.Name, s.resource.namespaced, false); err != nil {
		return err
	}
	s.updated = s.made
	return nil
}

// Len returns the number of objects that the load creates before it starts. 0 means that the load uses existing
// objects.
func (s *Set) Len() int { return s.count }

// Collection returns the path of the collection to watch. Call it only after Prepare.
func (s *Set) Collection() string {
	if s.cluster || s.count > 0 && len(s.namespaces) > 1 {
		return s.resource.collection("")
	}
	return s.resource.collection(s.namespace)
}

// AppendPath appends the path of object i, without the path prefix of a gateway. Call it only after Prepare.
func (s *Set) AppendPath(b []byte, i int) []byte {
	b = append(append(b, s.paths[s.home[i]]...), '/')
	return strconv.AppendInt(append(b, s.stem...), int64(i), 10)
}

// AppendPatch appends a JSON merge patch for object i that sets the payload of the given turn. Unless key is empty, the
// patch also sets the annotation named key to value. Neither key nor value may contain characters that need escaping in
// JSON. Call AppendPatch only after Prepare.
func (s *Set) AppendPatch(b []byte, i int, turn int64, key string, value []byte) []byte {
	return s.manifest.payload.appendPatch(b, s.payload, s.sizeOf(int64(i)), turn+1, key, value)
}

// sizeOf returns the number of letters in the payload of the n-th object.
func (s *Set) sizeOf(n int64) int {
	if len(s.sizes) == 1 {
		return s.sizes[0]
	}
	return s.sizes[s.sized.pick(s.drawSize.unit(n))]
}

// appendObject appends the body `of`, filled in for object i and the payload of a turn. Creates use turn 0. `version`
// is the resourceVersion for a body that contains one.
func (s *Set) appendObject(b []byte, of body, i int, turn int64, version uint64) []byte {
	v := values{
		stem: s.stem, number: int64(i), namespace: s.namespaces[s.home[i]],
		payload: s.payload, size: s.sizeOf(int64(i)), turn: turn, version: version,
	}
	return of.append(b, &v)
}

// appendNew appends the body of a request that creates a new object in a namespace. n is the object's number.
func (s *Set) appendNew(b []byte, n int64, namespace int) []byte {
	v := values{
		stem: s.newStem, number: n, namespace: s.namespaces[namespace],
		payload: s.payload, size: s.sizeOf(n), turn: n + 1,
	}
	return s.made.append(b, &v)
}

// collections returns the paths for lists. If `own` is true, there is one path for each namespace with the load's own
// objects, otherwise one path for the run's namespace.
func (s *Set) collections(own bool) []string {
	if own {
		return s.paths
	}
	return []string{s.resource.collection(s.namespace)}
}
