package check

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/stormglass/stormglass/loadgen/result"
)

// pictured is the maximum number of operations in a picture. The memory for a picture grows with the square of that
// number.
const pictured = 60

// explain finds, by binary search, the first operation that fits no linear order. The operation is in the last element
// of `parts`. explain returns a violation and an HTML page with the operations up to that one. The page is nil if it
// cannot be drawn. limit is the time limit of each search.
func explain(parts []segment, limit time.Duration) (result.Violation, []byte) {
	part := parts[len(parts)-1]
	begin := part.begin
	all := slices.SortedStableFunc(slices.Values(part.all), func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
	undecided := false
	n := sort.Search(len(all), func(n int) bool {
		switch search(begin, until(all, n+1), limit) {
		case porcupine.Illegal:
			return true
		case porcupine.Unknown:
			undecided = true
		}
		return false
	})
	wrong := result.Violation{Kind: result.NotLinearizable, Detail: fmt.Sprintf("its %d operations after %.3f s have no order that agrees with their times and responses", len(all), time.Duration(part.all[0].Call).Seconds())}
	if undecided || n == len(all) {
		return wrong, nil
	}
	last, did := all[n], all[n].Input.(step)
	wrong.Client, wrong.Version = &last.ClientId, did.made.version
	wrong.AtSecond = time.Duration(last.Return).Seconds()
	wrong.Detail = fmt.Sprintf("%q (from %.3f s to %.3f s) does not fit any order of the operations before it",
		did, time.Duration(last.Call).Seconds(), wrong.AtSecond)
	all = until(all, n+1)
	for i := len(parts) - 2; i >= 0 && len(all)+len(parts[i].all) <= pictured; i-- {
		begin, all = parts[i].begin, slices.Concat(parts[i].all, all)
	}
	return wrong, draw(begin, all)
}

// until returns the operations that had ended when the n-th operation ended, and the writes that were in flight at that
// time, because these may have taken effect. `all` must be sorted by return time.
func until(all []porcupine.Operation, n int) []porcupine.Operation {
	some := slices.Clone(all[:n])
	end := all[n-1].Return
	for _, o := range all[n:] {
		if do := o.Input.(step); do.kind == writes && o.Call <= end {
			do.perhaps = true
			o.Input, o.Return = do, horizon
			some = append(some, o)
		}
	}
	return some
}

// draw returns an HTML page with the last operations in `all`. It returns nil if these operations alone do not show the
// violation.
func draw(begin register, all []porcupine.Operation) []byte {
	if cut := len(all) - pictured; cut > 0 {
		all, begin = all[cut:], register{anything: true}
	}
	all = slices.Clone(all)
	end, rows := int64(0), 0
	for _, o := range all {
		rows = max(rows, o.ClientId+1)
		end = max(end, o.Call)
		if o.Return < horizon {
			end = max(end, o.Return)
		}
	}
	for i := range all {
		if all[i].Return == horizon { // draw an operation that never ended in its own row, up to the right edge
			all[i].ClientId, all[i].Return = rows, end+1
			rows++
		}
	}
	m := model(begin)
	verdict, info := porcupine.CheckOperationsVerbose(m, all, time.Second)
	var page bytes.Buffer
	if verdict != porcupine.Illegal || porcupine.Visualize(m, info, &page) != nil {
		return nil
	}
	return page.Bytes()
}
