// Package spans keeps the distributed traces of the requests that explain a run. It joins the spans of the API servers
// and etcd with the client's view of the same request, decides which traces to keep, and finds the spans that made a
// request slow.
//
// The package needs no network and no clock: package otlp receives spans, and a run tells the Keeper the time.
package spans

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"slices"
	"strings"
)

// TraceID and ID identify a trace and a span in it, as in W3C Trace Context. The zero value means no trace or span.
type (
	TraceID [16]byte
	ID      [8]byte
)

// String returns the id in hexadecimal.
func (t TraceID) String() string { return hex.EncodeToString(t[:]) }

// String returns the id in hexadecimal.
func (s ID) String() string { return hex.EncodeToString(s[:]) }

// MarshalText returns the id in hexadecimal.
func (t TraceID) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// MarshalText returns the id in hexadecimal.
func (s ID) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText sets the id to a hexadecimal text, or to zero if the text is not a valid id.
func (t *TraceID) UnmarshalText(text []byte) error { setHex(t[:], text); return nil }

// UnmarshalText sets the id to a hexadecimal text, or to zero if the text is not a valid id.
func (s *ID) UnmarshalText(text []byte) error { setHex(s[:], text); return nil }

// setHex decodes a hexadecimal id. It sets the id to zero if the text is not valid.
func setHex(id, text []byte) {
	clear(id)
	if decoded, err := hex.DecodeString(string(text)); err == nil {
		setID(id, decoded)
	}
}

// Span is an operation of a process, for example an API server's call of a webhook. Times are nanoseconds since 1970.
type Span struct {
	Trace  TraceID
	ID     ID
	Parent ID // ID of the parent span; zero if the span has no parent
	// Link is the span of another trace that caused this span; zero: no link. An API server that does not trust a client
	// begins a new trace, and links its first span to the client's span.
	Link Link
	// Process is the process that recorded the span, such as "kube-apiserver-0" or "loadgen".
	Process string
	Name    string
	// Client is true if the span waits for another process, which may have recorded a span for the same call.
	Client     bool
	Start, End int64
	Failed     bool
	Attributes []Attribute
	Events     []Event
}

// Link names a span of another trace.
type Link struct {
	Trace TraceID
	ID    ID
}

// Attribute is a named value of a span or event.
type Attribute struct{ Key, Value string }

// Event is a moment in a span, such as "Send raft proposal".
type Event struct {
	Name       string
	At         int64
	Attributes []Attribute
}

// Duration returns the length of the span in nanoseconds. It is never negative.
func (s *Span) Duration() int64 { return max(s.End-s.Start, 0) }

// Attribute returns the value of an attribute, or "" if the span does not have it.
func (s *Span) Attribute(key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value
		}
	}
	return ""
}

// size returns the approximate size of the span in memory, in bytes.
func (s *Span) size() int {
	const fixed = 200
	n := fixed + len(s.Process) + len(s.Name) + sizeOf(s.Attributes)
	for _, e := range s.Events {
		n += fixed/4 + len(e.Name) + sizeOf(e.Attributes)
	}
	return n
}

func sizeOf(all []Attribute) (n int) {
	for _, a := range all {
		n += 32 + len(a.Key) + len(a.Value)
	}
	return n
}

// Limits of a span and of a trace, so that a hostile process cannot fill the memory. Texts are limited in bytes.
const (
	longestName        = 256
	longestValue       = 1 << 10
	maxAttributes      = 64
	maxEvents          = 64
	maxEventAttributes = 8
	latestTime         = 1 << 62 // nanoseconds since 1970; a time in the year 2116
	maxSpansInTrace    = 2000
)

// Limit cuts off long names and values, and drops excess attributes and events. If the span ends before it starts, Limit
// sets its end to its start. It reports whether it changed the span; it does not report changed times of events.
func (s *Span) Limit() bool {
	cut := limitText(&s.Name, longestName)
	cut = limitText(&s.Process, longestName) || cut
	start := limitTime(s.Start)
	end := max(limitTime(s.End), start)
	cut = cut || start != s.Start || end != s.End
	s.Start, s.End = start, end
	cut = limitAttributes(&s.Attributes, maxAttributes) || cut
	if len(s.Events) > maxEvents {
		s.Events, cut = slices.Clone(s.Events[:maxEvents]), true
	}
	for i := range s.Events {
		e := &s.Events[i]
		e.At = limitTime(e.At)
		cut = limitText(&e.Name, longestName) || cut
		cut = limitAttributes(&e.Attributes, maxEventAttributes) || cut
	}
	return cut
}

func limitTime(ns int64) int64 { return min(max(ns, 0), latestTime) }

func limitAttributes(all *[]Attribute, most int) (cut bool) {
	if len(*all) > most {
		*all, cut = slices.Clone((*all)[:most]), true // frees the rest
	}
	for i := range *all {
		cut = limitText(&(*all)[i].Key, longestName) || cut
		cut = limitText(&(*all)[i].Value, longestValue) || cut
	}
	return cut
}

func limitText(text *string, longest int) bool {
	if len(*text) <= longest {
		return false
	}
	*text = strings.ToValidUTF8(strings.Clone((*text)[:longest]), "")
	return true
}

// Node is a span in the tree of its trace.
type Node struct {
	Span
	Children []*Node // children of the span, ordered by start
	// Self is the time in nanoseconds in which the span ran, but none of its children. Critical is the part of Self on the
	// critical path: the trace would have been shorter without it.
	Self, Critical int64
	// Path lists the parts of the span that make up Critical, the latest first.
	Path []Stretch
}

// Stretch is a time with a start and an end, in nanoseconds since 1970.
type Stretch struct{ Start, End int64 }

// Tree is a trace whose spans are arranged below their parents.
type Tree struct {
	// Roots are the spans without a parent, by start. A trace with all its spans has one.
	Roots []*Node
	// Orphans is the number of spans whose parent is missing. They are roots too. Broken is the number of spans that the
	// tree omits, because their parents form a cycle or their ID occurs twice. Skewed is the number of spans that ended
	// before their parent began, or began after their parent ended: the clocks of two processes differ, or a time is
	// wrong.
	Orphans, Broken, Skewed int
}

// Complete reports whether the tree has one root, all spans were placed, and their times can be compared.
func (t *Tree) Complete() bool {
	return len(t.Roots) == 1 && t.Orphans == 0 && t.Broken == 0 && t.Skewed == 0
}

// NewTree arranges spans below their parents and computes their times. It does not change the spans.
func NewTree(all []Span) *Tree {
	t := &Tree{}
	nodes := make(map[ID]*Node, len(all))
	order := make([]*Node, 0, len(all))
	for _, s := range all {
		if nodes[s.ID] != nil {
			t.Broken++
			continue
		}
		n := &Node{Span: s}
		nodes[s.ID] = n
		order = append(order, n)
	}
	slices.SortStableFunc(order, byStart)
	for _, n := range order {
		parent := nodes[n.Parent]
		switch {
		case n.Parent == ID{}:
			t.Roots = append(t.Roots, n)
		case parent == nil:
			t.Orphans++
			t.Roots = append(t.Roots, n)
		default:
			parent.Children = append(parent.Children, n)
			if n.End < parent.Start || n.Start > parent.End {
				t.Skewed++
			}
		}
	}
	placed := 0
	for _, root := range t.Roots {
		placed += measure(root)
		critical(root, root.Start, root.End)
	}
	t.Broken += len(order) - placed // spans in cycles are below no root
	return t
}

func byStart(a, b *Node) int {
	return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(b.End, a.End), bytes.Compare(a.ID[:], b.ID[:]))
}
