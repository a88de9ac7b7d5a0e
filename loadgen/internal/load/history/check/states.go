package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

type state struct{ version, value uint64 }

type observation struct {
	state
	register int
	at       time.Duration
}

// states contains all states of registers that were observed in the response to a write or read, or in a watch event.
type states struct {
	h *History
	// writes maps each written value to the index of the operation that wrote it.
	writes map[uint64]int
	// byValue contains the first observation of each value, byVersion the first observation of each version. Two
	// objects never have the same version.
	byValue, byVersion map[uint64]observation
	// all contains the observed states of each version of a register. One version has several states if the store lost
	// its last writes and reused their versions.
	all map[place][]observation
}

// place identifies one version of one register.
type place struct {
	register int
	version  uint64
}

// observedStates collects the observed states of a history. It returns a violation for each state that no write of the
// history can have made.
func observedStates(h *History) (*states, []result.Violation) {
	s := &states{h: h, writes: map[uint64]int{}, byValue: map[uint64]observation{}, byVersion: map[uint64]observation{}, all: map[place][]observation{}}
	for i, o := range h.Operations {
		if o.Kind == Write {
			s.writes[o.Value] = i
		}
	}
	var wrong []result.Violation
	told := map[observation]bool{}
	see := func(v observation, who result.Violation) {
		why := s.add(v)
		key := observation{state: v.state, register: v.register}
		if why == "" || told[key] {
			return
		}
		told[key] = true
		who.Kind, who.Register, who.Version, who.AtSecond = result.Phantom, s.name(v.register), v.version, v.at.Seconds()
		who.Detail = fmt.Sprintf("version %d with value %s was seen, and %s", v.version, valueText(v.value), why)
		wrong = append(wrong, who)
	}
	byReturn := func(a, b Operation) int { return cmp.Compare(a.Return, b.Return) }
	for _, o := range slices.SortedStableFunc(slices.Values(h.Operations), byReturn) {
		if o.Outcome == OK && o.Version > 0 {
			see(observation{state{o.Version, o.Value}, o.Register, o.Return}, result.Violation{Client: &o.Client})
		}
	}
	for i, w := range h.Watchers {
		for _, e := range w.Entries {
			switch e.Kind {
			case Changed:
				see(observation{state{e.Version, e.Value}, e.Register, e.At}, result.Violation{Watcher: &i})
			case Deleted:
				wrong = append(wrong, result.Violation{
					Kind: result.Phantom, Register: s.name(e.Register), Watcher: &i, Version: e.Version, AtSecond: e.At.Seconds(),
					Detail: fmt.Sprintf("version %d is a deletion, and registers are never deleted", e.Version),
				})
			}
		}
	}
	return s, wrong
}

// add records an observation. If no write can have made the observed state, it returns the reason; otherwise it
// returns "".
func (s *states) add(v observation) string {
	if v.register < 0 || v.register >= len(s.h.Registers) {
		return "it does not belong to a register"
	}
	at := place{v.register, v.version}
	if !slices.ContainsFunc(s.all[at], func(o observation) bool { return o.value == v.value }) {
		s.all[at] = append(s.all[at], v)
	}
	if first, ok := s.byVersion[v.version]; ok && (first.value != v.value || first.register != v.register) {
		return fmt.Sprintf("the same version was also seen on %s with value %s", s.name(first.register), valueText(first.value))
	} else if !ok || v.at < first.at {
		s.byVersion[v.version] = v
	}
	if r := s.h.Registers[v.register]; v.state == (state{r.Version, r.Value}) {
		return ""
	}
	i, ok := s.writes[v.value]
	if !ok {
		return "no write has that value"
	}
	w := s.h.Operations[i]
	first, again := s.byValue[v.value]
	if !again || v.at < first.at {
		s.byValue[v.value] = v
	}
	switch {
	case w.Register != v.register:
		return fmt.Sprintf("that value was written to %s", s.name(w.Register))
	case again && first.version != v.version:
		return fmt.Sprintf("that value was seen as version %d: it was written twice", first.version)
	case w.Outcome == Conflict || w.Outcome == Absent || w.Outcome == Refused:
		return fmt.Sprintf("the API server answered that the write by client %d was not executed", w.Client)
	case v.version <= w.Expected:
		return fmt.Sprintf("the write of this value replaced version %d, which is not older", w.Expected)
	case v.at < w.Call:
		return "it had not been written yet"
	}
	return ""
}

// happened returns the observed states that writes of this history made, in the order of their versions.
func (s *states) happened() []observation {
	var all []observation
	for _, v := range s.byVersion {
		if _, ok := s.writes[v.value]; ok && v.version > s.h.Registers[v.register].Version {
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b observation) int { return cmp.Compare(a.version, b.version) })
	return all
}

// replaced returns the state that the write w replaced: version w.Expected as last observed before w's call, or else as
// first observed after the call. ok is false if that version was never observed.
func (s *states) replaced(w Operation) (is state, ok bool) {
	byTime := func(a, b observation) int { return cmp.Compare(a.at, b.at) }
	all := slices.SortedFunc(slices.Values(s.all[place{w.Register, w.Expected}]), byTime)
	if len(all) == 0 {
		return state{}, false
	}
	after := slices.IndexFunc(all, func(v observation) bool { return v.at > w.Call })
	if after < 0 {
		after = len(all)
	}
	return all[max(after-1, 0)].state, true
}

func (s *states) unknownHappened() (n int64) {
	for value := range s.byValue {
		if s.h.Operations[s.writes[value]].Outcome == Unknown {
			n++
		}
	}
	return n
}

// newest returns the highest observed version of each register.
func (s *states) newest() []uint64 {
	high := make([]uint64, len(s.h.Registers))
	for i, r := range s.h.Registers {
		high[i] = r.Version
	}
	for _, v := range s.byVersion {
		high[v.register] = max(high[v.register], v.version)
	}
	return high
}

func (s *states) name(register int) string {
	if register < 0 || register >= len(s.h.Registers) {
		return ""
	}
	return s.h.Registers[register].Name
}

func valueText(v uint64) string {
	if v == Foreign {
		return "of an unknown writer"
	}
	return fmt.Sprint(v)
}
