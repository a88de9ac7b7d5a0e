package capture

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/stormglass/stormglass/internal/bools"
	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
)

// Result describes the recording that was written, and the size of its source.
type Result struct {
	// Lines and Events are the numbers of lines and events in the source.
	Lines  int64 `json:"lines,omitempty"`
	Events int64 `json:"events,omitempty"`
	// Out is the path of the recording.
	Out     string            `json:"out"`
	Header  recording.Header  `json:"header"`
	Summary recording.Summary `json:"summary"`
}

// recorder collects the requests of a recording, and writes it at the end.
type recorder struct {
	out       string
	keepNames bool
	// from and to limit the recorded time. A zero time means no limit.
	from, to time.Time

	strings *stringTable
	records *records
	spans   []span // time range of each log
	lines   int64
	events  int64
	changes uint64           // number of calls of the method `change`
	dropped map[string]int64 // number of excluded requests, by reason
	notes   []string
}

func newRecorder(out string, keepNames bool) *recorder {
	return &recorder{out: out, keepNames: keepNames, strings: newStringTable(), records: &records{numbers: map[shape]uint32{}}, dropped: map[string]int64{}}
}

func (rec *recorder) note(format string, args ...any) {
	rec.notes = append(rec.notes, fmt.Sprintf(format, args...))
}

// micros returns t in microseconds since 1970, or the smallest int64 for the zero time.
func micros(t time.Time) int64 {
	if t.IsZero() {
		return math.MinInt64
	}
	return t.UnixMicro()
}

// window is the time range that a recording covers, in microseconds since 1970.
type window struct{ start, end int64 }

// window returns the time that the recording covers: from --from to --to. Without --from, it starts when the request
// that ended first was received, because the logs may lack earlier requests. Without --to, it ends at the last event.
func (rec *recorder) window() (w window) {
	first := int64(math.MaxInt64)
	w.start, w.end = math.MaxInt64, math.MinInt64
	for _, s := range rec.spans {
		first, w.end = min(first, s.from), max(w.end, s.to)
	}
	ended := int64(math.MaxInt64)
	for _, part := range rec.records.parts {
		for i := range part {
			r := &part[i]
			if r.stage.Ended() && !rec.records.shapes[r.shape].longRunning && r.end < ended {
				ended, w.start = r.end, r.at
			}
		}
	}
	w.start = min(w.start, first)
	if !rec.from.IsZero() {
		w.start = rec.from.UnixMicro()
	}
	if !rec.to.IsZero() {
		w.end = rec.to.UnixMicro()
	}
	return w
}

// placed is the position of a request in the window. dropped is the reason why the recording excludes the request, or
// "".
type placed struct {
	at, took  recording.Micros
	dropped   string
	carried   bool // the request is long-running and was open when the window began
	unended   bool // the logs do not contain the end of the request
	stillOpen bool // the request is long-running and was open when the window ended
}

// place returns the position of a request in the window.
func (w window) place(r *record, s *shape) (p placed) {
	p.dropped = s.dropped
	at, end := r.at, r.end
	ended := r.stage.Ended()
	switch {
	case p.dropped != "":
		return p
	case at < w.start && (!s.longRunning || ended && end <= w.start):
		p.dropped = beforeStart
		return p
	case at > w.end:
		p.dropped = outsideWindow
		return p
	case at < w.start:
		at, p.carried = w.start, true
	}
	switch {
	case s.longRunning && (!ended || end > w.end):
		end, p.stillOpen = w.end, true
	case !ended:
		end, p.unended = at, true
	}
	p.at = recording.Micros(at - w.start)
	p.took = recording.Micros(max(min(end, w.end)-at, 0))
	return p
}

// actor identifies a client. Its fields are indexes into the string table.
type actor struct{ user, as, agent uint32 }

func (s *shape) actor() actor { return actor{s.user, s.as, s.agent} }

// write writes the recorded requests as a recording. h contains the header fields that depend on the source.
func (rec *recorder) write(ctx context.Context, h recording.Header) (*Result, error) {
	duplicates := rec.records.pair()
	w := rec.window()
	var kept int64
	var carried, unended, open, bodies int
	actors := map[actor]int64{}
	_ = rec.records.each(func(r *record) error {
		s := &rec.records.shapes[r.shape]
		p := w.place(r, s)
		if p.dropped != "" {
			rec.dropped[p.dropped]++
			return nil
		}
		kept++
		actors[s.actor()]++
		carried += bools.Int(p.carried)
		unended += bools.Int(p.unended)
		open += bools.Int(p.stillOpen)
		bodies += bools.Int(r.size > 0)
		return nil
	})
	if w.end-w.start > recording.Longest.Microseconds() {
		return nil, exitcode.Usagef("the source covers %s to %s, but a recording covers at most 31 days (record a part with --from and --to)", clock(w.start), clock(w.end))
	}
	if kept == 0 {
		return nil, exitcode.Usagef("nothing was recorded, because all requests were excluded: %s", dropped(rec.dropped))
	}
	rec.notes = append(rec.notes, coverage(rec.spans, duplicates > 0)...)
	for _, n := range []struct {
		count int
		what  string
	}{
		{int(duplicates), "events that are in the logs more than once (each counts once)"},
		{carried, "watches that were already open when the recording begins (they start with the recording)"},
		{open, "watches that were still open when the recording ends (they end with the recording)"},
		{unended, "requests whose end is not in the logs (their status code and duration are unknown)"},
		{bodies, "bodies of requests that were dropped except for their sizes (a replay creates workloads with 0 replicas)"},
	} {
		if n.count > 0 {
			rec.note("%s: %d", n.what, n.count)
		}
	}
	names := &names{}
	if !rec.keepNames {
		names = newNames()
	}
	var of map[actor]int
	of, h.Actors = rec.actors(actors, names)
	h.Format, h.Start, h.Length = recording.Version, time.UnixMicro(w.start).UTC(), recording.Micros(w.end-w.start)
	h.Requests, h.Hashed, h.Notes = kept, !rec.keepNames, rec.notes
	if len(rec.dropped) > 0 {
		h.Dropped = rec.dropped
	}
	summary, err := rec.writeRequests(ctx, h, w, of, names)
	if err != nil {
		return nil, err
	}
	return &Result{Lines: rec.lines, Events: rec.events, Out: rec.out, Header: h, Summary: summary}, nil
}

// actors assigns an index to each actor: 0 to the actor with the most requests, and so on.
func (rec *recorder) actors(requests map[actor]int64, names *names) (of map[actor]int, all []recording.Actor) {
	text := rec.strings.string
	keys := slices.SortedFunc(maps.Keys(requests), func(x, y actor) int {
		return cmp.Or(cmp.Compare(requests[y], requests[x]), cmp.Compare(text(x.user), text(y.user)), cmp.Compare(text(x.agent), text(y.agent)), cmp.Compare(text(x.as), text(y.as)))
	})
	of = map[actor]int{}
	for i, key := range keys {
		of[key] = i
		all = append(all, recording.Actor{
			Name: cmp.Or(names.user(text(key.user)), "system:anonymous"), UserAgent: text(key.agent), As: names.user(text(key.as)),
		})
	}
	return of, all
}

// writeRequests writes and summarizes the requests within the window.
func (rec *recorder) writeRequests(ctx context.Context, h recording.Header, w window, actors map[actor]int, names *names) (recording.Summary, error) {
	tally := recording.NewTally()
	shapes := rec.described(actors, names)
	n := 0
	err := recording.Write(rec.out, h, func(write func(*recording.Request) error) error {
		return rec.records.each(func(r *record) error {
			if n++; n%4096 == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			s := &rec.records.shapes[r.shape]
			p := w.place(r, s)
			if p.dropped != "" {
				return nil
			}
			request := shapes(r.shape)
			request.At, request.Took, request.Code, request.Size = p.at, p.took, int(r.code), int(r.size)
			request.Name = names.object(request.Group, request.Resource, rec.strings.string(r.name))
			request.ResourceVersion = rec.strings.string(r.revision)
			if request.Code < 100 || request.Code > 599 {
				request.Code = 0
			}
			tally.Add(&request, request.At)
			return write(&request)
		})
	})
	return tally.Summary(h.Length), err
}

// described returns a function from the index of a shape to the fields that all requests of the shape share. The
// function caches its results.
func (rec *recorder) described(actors map[actor]int, names *names) func(uint32) recording.Request {
	made := map[uint32]recording.Request{}
	text := rec.strings.string
	return func(number uint32) recording.Request {
		r, ok := made[number]
		if ok {
			return r
		}
		s := &rec.records.shapes[number]
		r = recording.Request{
			Actor: actors[s.actor()], Verb: text(s.verb), Group: text(s.group), Version: cmp.Or(text(s.version), "v1"), Resource: text(s.resource),
			Subresource: text(s.subresource), Namespace: names.hash(text(s.namespace)),
			LabelSelector: names.labelSelector(text(s.labels)), FieldSelector: names.fieldSelector(text(s.fields)),
			Limit: s.limit, Paged: s.paged, InitialEvents: s.initialEvents, PatchType: s.patchType, DryRun: s.dryRun,
		}
		if len(made) == maxMade {
			clear(made)
		}
		made[number] = r
		return r
	}
}

// maxMade is the maximum number of shapes that the method `described` caches.
const maxMade = 1 << 14
