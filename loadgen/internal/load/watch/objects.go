package watch

import "context"

// Objects are what is watched, and what changes write to. Paths are percent-encoded, without a query.
type Objects interface {
	// Prepare makes the objects, or finds the resource. Errors name verb and object. The rest needs it.
	Prepare(ctx context.Context) error
	// Len is how many objects with load.LoadLabel the load has of its own; 0: it watches what is there.
	Len() int
	// Collection is the path of what is watched, with all the load's own objects.
	Collection() string
	// AppendPath appends the path of object i.
	AppendPath(b []byte, i int) []byte
	// AppendPatch appends a JSON merge patch of object i: the payload of that turn, and the annotation key with
	// that value. Neither needs escaping.
	AppendPatch(b []byte, i int, turn int64, key string, value []byte) []byte
}
