package watch

import "context"

// Objects are what a set of watches watches, and what measured changes write
// to. All paths are of the API server, percent-encoded, without a query.
type Objects interface {
	// Prepare makes the objects, or finds the resource. Errors name verb and
	// object, with a hint. The rest is valid after it.
	Prepare(ctx context.Context) error
	// Len is how many objects the load has of its own, labelled with
	// traffic.LoadLabel; 0: none, and the watches are of whatever is there.
	Len() int
	// Collection is the path of what is watched. All the load's own objects
	// are in it.
	Collection() string
	// AppendPath appends the path of object i.
	AppendPath(b []byte, i int) []byte
	// AppendPatch appends a JSON merge patch of object i: the payload of that
	// turn, another one at each, and the annotation key with that value.
	// Neither needs escaping in JSON.
	AppendPatch(b []byte, i int, turn int64, key string, value []byte) []byte
}
