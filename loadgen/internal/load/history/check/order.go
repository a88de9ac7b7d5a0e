package check

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// maxTogether is the maximum number of operations in one search. With this number, a search takes 50 MB of memory.
const maxTogether = 20_000

// explainWithin is the time limit of each step of the binary search for the first operation that fits no linear
// order.
const explainWithin = 2 * time.Second

// order checks that each register is linearizable. Checking registers separately suffices (Herlihy and Wing 1990,
// theorem 1).
func (r *Report) order(s *states, limit time.Duration) {
	operations := make([][]Operation, len(s.h.Registers))
	for _, o := range s.h.Operations {
		operations[o.Register] = append(operations[o.Register], o)
	}
	newest := s.newest()
	r.Linearizable = "yes"
	end := time.Now().Add(limit)
	for i, at := range s.h.Registers {
		all := steps(s, operations[i], newest[i])
		// Divide the remaining time equally, so that later registers get the time that earlier ones did not need.
		share := time.Until(end) / time.Duration(len(s.h.Registers)-i)
		parts := segments(register{state: state{at.Version, at.Value}}, all)
		verdict, bad := judge(parts, share)
		switch verdict {
		case porcupine.Unknown:
			r.Unjudged = append(r.Unjudged, fmt.Sprintf("%s: no linear order of its %d operations was found or ruled out within %v", at.Name, len(all), max(share, 0).Round(time.Millisecond)))
			if r.Linearizable == "yes" {
				r.Linearizable = "unknown"
			}
		case porcupine.Illegal:
			r.Linearizable = "no"
			wrong, picture := explain(parts[:bad+1], min(share, explainWithin))
			wrong.Register = at.Name
			r.Violations = append(r.Violations, wrong)
			if picture != nil && len(r.Pictures) < maxPictures {
				r.Pictures = append(r.Pictures, Picture{at.Name, picture})
			}
		}
	}
}

// judge returns the verdict on all parts of a register's history, and the index of the first part without a linear
// order, or -1. If one part takes too long, judge still judges the later parts.
func judge(parts []segment, limit time.Duration) (verdict porcupine.CheckResult, bad int) {
	end := time.Now().Add(limit)
	verdict = porcupine.Ok
	for i, p := range parts {
		left := time.Until(end)
		if len(p.all) > maxTogether || left <= 0 {
			verdict = porcupine.Unknown
			continue
		}
		switch search(p.begin, p.all, left) {
		case porcupine.Unknown:
			verdict = porcupine.Unknown
		case porcupine.Illegal:
			return porcupine.Illegal, i
		}
	}
	return verdict, -1
}

// search searches for a linear order of operations. It raises `limit` to at least 1 ns, because for porcupine 0 means
// no limit.
func search(begin register, all []porcupine.Operation, limit time.Duration) porcupine.CheckResult {
	return porcupine.CheckOperationsTimeout(model(begin), slices.Clone(all), max(limit, 1))
}
