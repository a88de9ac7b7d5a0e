package capture

import (
	"cmp"
	"container/heap"
	"slices"

	"github.com/stormglass/stormglass/loadgen/internal/auditlog"
)

// record is an event of a log, or all events of a request after the method `pair` has merged them. It has no pointers,
// to keep garbage collection cheap.
type record struct {
	id uint64 // hash of the auditID
	// at is the time when the request was received, and end is the time of the event's stage, in microseconds since
	// 1970.
	at, end int64
	// shape is an index into records.shapes. name and revision are indexes into the string table.
	shape, name, revision uint32
	size                  uint32
	code                  uint16
	stage                 auditlog.Stage
	oneTime               bool // whether the event has only one time; at then equals end, unless pair has merged records
}

// shape holds the fields that many requests share. Strings are indexes into the string table.
type shape struct {
	// dropped is the reason why the recording excludes the requests, or "". If it is set, all other fields except
	// longRunning are empty.
	dropped     string
	longRunning bool

	user, as, agent                             uint32
	verb, group, version, resource, subresource uint32
	namespace, labels, fields                   uint32
	limit                                       int64
	patchType                                   string
	paged, initialEvents, dryRun                bool
}

// buckets is the number of slices among which the records are divided by id, so that a slice that grows copies only a
// part of the records. All events of a request are in the same slice.
const buckets = 64

// records holds the events of all logs.
type records struct {
	parts   [buckets][]record
	shapes  []shape
	numbers map[shape]uint32
}

// idOf returns the FNV-1a hash of an auditID.
func idOf(auditID []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range auditID {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

func (r *records) add(rec record) {
	part := &r.parts[rec.id%buckets]
	*part = append(*part, rec)
}

// shape returns the index of a shape, and adds the shape if it is new.
func (r *records) shape(s shape) uint32 {
	number, ok := r.numbers[s]
	if !ok {
		number = uint32(len(r.shapes))
		r.numbers[s] = number
		r.shapes = append(r.shapes, s)
	}
	return number
}

// pair merges the events of each request into one record. It returns the number of duplicate events.
func (r *records) pair() (duplicates int64) {
	for i, part := range r.parts {
		slices.SortFunc(part, func(a, b record) int {
			return cmp.Or(cmp.Compare(a.id, b.id), cmp.Compare(a.at, b.at), cmp.Compare(a.stage, b.stage))
		})
		kept := part[:0]
		for _, rec := range part {
			// A client may reuse an auditID, so the time must match, too.
			last := max(len(kept)-1, 0)
			switch {
			case len(kept) == 0 || kept[last].id != rec.id:
				kept = append(kept, rec)
			case kept[last].stage == rec.stage && kept[last].end == rec.end:
				duplicates++
			case kept[last].at == rec.at || rec.oneTime && kept[last].stage < rec.stage:
				kept[last] = merge(kept[last], rec)
			default:
				kept = append(kept, rec)
			}
		}
		slices.SortFunc(kept, func(a, b record) int {
			return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.id, b.id))
		})
		r.parts[i] = kept
	}
	return duplicates
}

// merge returns the later of two events of a request, with the fields that only the earlier event has.
func merge(earlier, later record) record {
	later.at = earlier.at
	later.name = cmp.Or(later.name, earlier.name)
	later.size = cmp.Or(later.size, earlier.size)
	later.code = cmp.Or(later.code, earlier.code)
	return later
}

// each calls visit for each record in chronological order.
func (r *records) each(visit func(*record) error) error {
	var cursors cursors
	for _, part := range r.parts {
		if len(part) > 0 {
			cursors = append(cursors, part)
		}
	}
	heap.Init(&cursors)
	for len(cursors) > 0 {
		first := &cursors[0][0]
		if err := visit(first); err != nil {
			return err
		}
		if cursors[0] = cursors[0][1:]; len(cursors[0]) == 0 {
			heap.Pop(&cursors)
		} else {
			heap.Fix(&cursors, 0)
		}
	}
	return nil
}

// cursors is a heap of slices, one for each bucket: the records of the bucket that were not visited yet. The heap is
// ordered by the time of the first record of each slice.
type cursors [][]record

func (c cursors) Len() int      { return len(c) }
func (c cursors) Swap(i, j int) { c[i], c[j] = c[j], c[i] }
func (c cursors) Less(i, j int) bool {
	a, b := &c[i][0], &c[j][0]
	return a.at < b.at || a.at == b.at && a.id < b.id
}
func (c *cursors) Push(any) {} // never called: each only removes slices
func (c *cursors) Pop() any {
	old := *c
	*c = old[:len(old)-1]
	return nil
}
