package check

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"time"
)

// simulation makes histories of a store that is linearizable by construction: each operation is executed at one moment between
// its call and its return (if its outcome is unknown, at any moment after its call, or never), and each watcher receives every
// change in order. A fault makes the store break one guarantee once.
type simulation struct {
	*rand.Rand
	h       History
	store   []state // now
	before  [][]state
	version uint64
	value   uint64
	changes []change
	fault   func(s *simulation, o *Operation, happened bool) bool
	at      int        // the first operation that may have the fault
	broken  *Operation // the operation with the fault
}

type change struct {
	register int
	state
	at time.Duration
}

// moment is an operation in flight.
type moment struct {
	o       Operation
	execute time.Duration // below 0: never
}

const (
	simClients, simRegisters, simWatchers = 4, 2, 2
	simOperations                         = 120
)

func simulate(seed uint64, fault func(*simulation, *Operation, bool) bool) *simulation {
	s := &simulation{Rand: rand.New(rand.NewPCG(seed, 1)), version: 100, fault: fault}
	for i := range simRegisters {
		s.version++
		s.h.Registers = append(s.h.Registers, Register{Name: string(rune('a' + i)), Version: s.version})
		s.store = append(s.store, state{version: s.version})
		s.before = append(s.before, []state{s.store[i]})
	}
	start := s.version
	s.at = s.IntN(simOperations / 2)
	s.run()
	s.watch(start)
	return s
}

func (s *simulation) some(most int) time.Duration { return time.Duration(1 + s.IntN(most)) }

// run executes the clients' operations in the order of their moments of execution.
func (s *simulation) run() {
	var all []*moment
	free := make([]time.Duration, simClients)
	for range simOperations {
		c := s.IntN(simClients)
		m := &moment{o: Operation{Client: c, Register: s.IntN(simRegisters), Call: free[c] + s.some(20), Kind: Kind(s.IntN(3))}}
		m.o.Return = m.o.Call + s.some(60)
		m.execute = m.o.Call + time.Duration(s.Int64N(int64(m.o.Return-m.o.Call)+1))
		if s.IntN(6) == 0 {
			m.o.Outcome = Unknown
			switch s.IntN(3) {
			case 0:
				m.execute = -1
			case 1: // long after its client gave up
				m.execute += s.some(300)
			}
		}
		free[c] = m.o.Return
		all = append(all, m)
	}
	end := slices.Max(free) + 400
	for i := range simRegisters {
		all = append(all, &moment{
			o:       Operation{Client: 0, Register: i, Kind: Read, Final: true, Call: end, Return: end + 9},
			execute: end + 5,
		})
		end += 10
	}
	slices.SortStableFunc(all, func(a, b *moment) int { return cmp.Compare(a.execute, b.execute) })
	known := make([][simRegisters]uint64, simClients)
	for i, m := range all {
		s.execute(i, m, &known[m.o.Client])
		s.h.Operations = append(s.h.Operations, m.o)
	}
}

// execute answers one operation. A write mostly expects the current version, if any client has ever received it.
func (s *simulation) execute(i int, m *moment, known *[simRegisters]uint64) {
	o := &m.o
	now := &s.store[o.Register]
	if o.Kind == Write {
		s.value++
		o.Value, o.Expected = s.value, now.version
		if s.IntN(4) == 0 || !s.told(*now) {
			o.Expected = max(known[o.Register], s.h.Registers[o.Register].Version)
		}
	}
	happens := m.execute >= 0
	if o.Outcome != Unknown && !o.Final && s.IntN(12) == 0 {
		o.Outcome, happens = Refused, false
	}
	if i >= s.at && s.broken == nil && !o.Final && s.fault != nil && s.fault(s, o, happens) {
		broken := *o
		s.broken = &broken
		return
	}
	if !happens {
		return
	}
	switch {
	case o.Kind == CachedRead:
		old := s.before[o.Register]
		*now = old[len(old)-1]
		s.answer(o, old[s.IntN(len(old))], known)
	case o.Kind == Read:
		s.answer(o, *now, known)
	case o.Expected == now.version:
		s.put(o, m.execute)
		s.answer(o, *now, known)
	case o.Outcome == OK:
		o.Outcome = Conflict
	}
}

func (s *simulation) answer(o *Operation, is state, known *[simRegisters]uint64) {
	if o.Outcome == OK {
		o.Version, o.Value = is.version, is.value
		known[o.Register] = is.version
	}
}

// told reports whether a client received a state.
func (s *simulation) told(is state) bool {
	return is.value == 0 || slices.ContainsFunc(s.h.Operations, func(o Operation) bool { return o.Outcome == OK && o.Version == is.version })
}

// put executes a write.
func (s *simulation) put(o *Operation, at time.Duration) {
	s.version += uint64(1 + s.IntN(3)) // others write too
	s.store[o.Register] = state{s.version, o.Value}
	s.before[o.Register] = append(s.before[o.Register], s.store[o.Register])
	s.changes = append(s.changes, change{o.Register, s.store[o.Register], at})
}

// watch delivers all changes to the watchers, with bookmarks and one relist.
func (s *simulation) watch(start uint64) {
	for range simWatchers {
		w := Watcher{Start: start, Live: true}
		relist := s.IntN(2 * max(len(s.changes), 1))
		for i, c := range s.changes {
			if i == relist {
				w.Entries = append(w.Entries, Entry{Kind: Listed, At: c.at + 5, Version: c.version})
				continue
			}
			w.Entries = append(w.Entries, Entry{Kind: Changed, At: c.at + s.some(9), Register: c.register, Version: c.version, Value: c.value})
			if s.IntN(5) == 0 {
				w.Entries = append(w.Entries, Entry{Kind: Bookmark, At: c.at + 9, Version: c.version})
			}
		}
		s.h.Watchers = append(s.h.Watchers, w)
	}
}
