package recording

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/exitcode"
)

// Recording is a whole recording in memory. Each request takes about 40 bytes.
type Recording struct {
	Header
	// Shapes are the distinct combinations of properties that requests have (see Shape). Objects are the distinct
	// objects in the requests.
	Shapes  []Shape
	Objects []Object
	// Namespaces are the namespaces of requests for namespaced resources, in the order of their first request.
	Namespaces []string
	Entries    []Entry
}

// Entry is one request of a Recording. Took and Code are zero if they are unknown.
type Entry struct {
	At, Took Micros
	// Actor, Shape, Namespace and Object are indexes into the lists of the Recording. Namespace and Object may be None.
	Actor, Shape, Namespace, Object int32
	// Size is the size of the request body in bytes, or 0 if unknown.
	Size int32
	Code int16
}

// None is the index for a missing namespace or object.
const None = -1

// Exact is the value of Shape.ResourceVersion for requests whose resourceVersion is neither "" nor "0".
const Exact = "exact"

// Shape holds properties that many requests of a recording share.
type Shape struct {
	Verb, Group, Version, Resource, Subresource string
	LabelSelector, FieldSelector                string
	Limit                                       int64
	Paged, InitialEvents                        bool
	// ResourceVersion is "", "0" or Exact.
	ResourceVersion string
	PatchType       string
	DryRun          bool
}

// Kind returns the resource with its group and subresource, such as "deployments.apps/scale".
func (s Shape) Kind() string { return objectName(s.Group, s.Resource, s.Subresource) }

// GroupResource returns the resource with its group, such as "deployments.apps".
func (s Shape) GroupResource() string { return objectName(s.Group, s.Resource, "") }

// Writes reports whether the verb is a write.
func (s Shape) Writes() bool { return !slices.Contains([]string{"get", "list", "watch"}, s.Verb) }

// Collective reports whether the verb applies to a collection of objects. If such a request has a name, it selects only
// the object with this name.
func (s Shape) Collective() bool {
	return slices.Contains([]string{"list", "watch", "deletecollection"}, s.Verb)
}

// RenewsLease reports whether a request may be part of the renewal of a Lease. The holder of a Lease reads and writes
// it at a fixed interval, even if the recording is replayed faster.
func RenewsLease(verb, group, resource string) bool {
	return group == "coordination.k8s.io" && resource == "leases" && slices.Contains([]string{"get", "update", "patch"}, verb)
}

// Object is an object to which requests apply.
type Object struct {
	Group, Resource, Name string
	Namespace             int32
}

// ErrEmpty is the error for a recording without requests.
var ErrEmpty = errors.New("the recording has no requests")

// LoadData reads a recording from data. Its errors contain path as the name of the file, the line and the field.
func LoadData(path string, data []byte) (*Recording, error) {
	r, err := open(path, io.NopCloser(bytes.NewReader(data)))
	if err != nil {
		return nil, err
	}
	return r.whole()
}

// whole reads all requests of a recording and closes the Reader.
func (r *Reader) whole() (*Recording, error) {
	defer r.Close()
	t, err := Load(r.Header(), r.Requests())
	if errors.Is(err, ErrEmpty) {
		err = exitcode.Usagef("recording %s: the recording has no requests (`loadgen record` excluded all events of the log)", r.path)
	}
	return t, err
}

// Load builds a Recording from a header and requests. It returns the error that requests yields, or an error with the
// number (from 1) of an invalid request.
func Load(h Header, requests iter.Seq2[Request, error]) (*Recording, error) {
	b := builder{
		t: &Recording{Header: h}, shapes: map[Shape]int32{}, objects: map[Object]int32{}, namespaces: map[string]int32{},
	}
	last := Micros(0)
	for r, err := range requests {
		if err != nil {
			return nil, err
		}
		switch number := len(b.t.Entries) + 1; {
		case r.At < last:
			return nil, fmt.Errorf("request %d is earlier than the previous request", number)
		case r.Actor < 0 || r.Actor >= len(h.Actors):
			return nil, fmt.Errorf("request %d refers to actor %d, but the recording has only %d actors", number, r.Actor, len(h.Actors))
		}
		last = r.At
		b.add(r)
	}
	if len(b.t.Entries) == 0 {
		return nil, ErrEmpty
	}
	return b.t, nil
}

type builder struct {
	t          *Recording
	shapes     map[Shape]int32
	objects    map[Object]int32
	namespaces map[string]int32
}

func (b *builder) add(r Request) {
	s := Shape{
		Verb: r.Verb, Group: r.Group, Version: r.Version, Resource: r.Resource, Subresource: r.Subresource,
		LabelSelector: r.LabelSelector, FieldSelector: r.FieldSelector, Limit: r.Limit, Paged: r.Paged,
		InitialEvents: r.InitialEvents, ResourceVersion: r.ResourceVersion, PatchType: r.PatchType, DryRun: r.DryRun,
	}
	if s.ResourceVersion != "" && s.ResourceVersion != "0" {
		s.ResourceVersion = Exact
	}
	name := r.Name
	if s.Collective() {
		var selected string
		s.FieldSelector, selected = cutName(s.FieldSelector)
		name = cmp.Or(selected, name)
	}
	namespace := r.Namespace
	if r.Group == "" && r.Resource == "namespaces" {
		namespace = "" // the API server reports the name of a Namespace as its namespace, too
	}
	e := Entry{
		At: r.At, Took: max(r.Took, 0), Actor: int32(r.Actor), Shape: index(b.shapes, &b.t.Shapes, s),
		Namespace: None, Object: None, Size: int32(min(max(r.Size, 0), 1<<30)), Code: int16(r.Code),
	}
	if namespace != "" {
		e.Namespace = index(b.namespaces, &b.t.Namespaces, namespace)
	}
	if name != "" {
		e.Object = index(b.objects, &b.t.Objects, Object{Group: r.Group, Resource: r.Resource, Name: name, Namespace: e.Namespace})
	}
	b.t.Entries = append(b.t.Entries, e)
}

// index returns the index of value in list. If the list does not contain value, index appends it. The map `known`
// contains the index of each value.
func index[T comparable](known map[T]int32, list *[]T, value T) int32 {
	i, ok := known[value]
	if !ok {
		i = int32(len(*list))
		known[value], *list = i, append(*list, value)
	}
	return i
}

// cutName removes metadata.name=NAME from a field selector. It returns the rest of the selector, and NAME.
func cutName(selector string) (rest, name string) {
	if !strings.Contains(selector, "metadata.name=") {
		return selector, ""
	}
	var kept []string
	for term := range strings.SplitSeq(selector, ",") {
		if value, ok := strings.CutPrefix(term, "metadata.name="); ok {
			name = strings.TrimPrefix(value, "=") // the operator may be ==
			continue
		}
		kept = append(kept, term)
	}
	return strings.Join(kept, ","), name
}

// Last returns the time of the last request.
func (t *Recording) Last() Micros { return t.Entries[len(t.Entries)-1].At }
