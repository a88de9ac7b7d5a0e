package check

import (
	"fmt"
	"testing"
	"time"
)

// many returns a valid history with the maximum number of operations: five clients whose writes and reads overlap, and three
// watchers.
func many(operations, registers int) *History {
	h := &History{Watchers: make([]Watcher, 3)}
	for i := range registers {
		h.Registers = append(h.Registers, Register{Name: fmt.Sprint(i), Version: uint64(i + 1)})
	}
	version, value := uint64(registers), uint64(0)
	now := make([]state, registers)
	for i, r := range h.Registers {
		now[i] = state{r.Version, 0}
	}
	for i := range h.Watchers {
		h.Watchers[i] = Watcher{Start: version, Live: true}
	}
	for n := range operations {
		at := time.Duration(n) * time.Millisecond
		o := Operation{Client: n % 5, Register: n * 7 % registers, Call: at - 4*time.Millisecond, Return: at + 900*time.Microsecond, Final: n >= operations-registers}
		is := &now[o.Register]
		if n%3 == 0 && !o.Final {
			version, value = version+1, value+1
			o.Kind, o.Expected, o.Version, o.Value = Write, is.version, version, value
			*is = state{version, value}
			for i := range h.Watchers {
				w := &h.Watchers[i]
				w.Entries = append(w.Entries, Entry{At: at, Register: o.Register, Version: version, Value: value})
			}
		} else {
			o.Kind, o.Version, o.Value = Read, is.version, is.value
		}
		h.Operations = append(h.Operations, o)
	}
	return h
}

// The cost of judging the longest history. One register is the worst case, because its operations overlap without a gap.
func BenchmarkCheck(b *testing.B) {
	for _, c := range []struct{ operations, registers int }{{100_000, 5}, {100_000, 50}, {15_000, 1}} {
		b.Run(fmt.Sprintf("operations=%d/registers=%d", c.operations, c.registers), func(b *testing.B) {
			h := many(c.operations, c.registers)
			b.ReportAllocs()
			for b.Loop() {
				if r := Check(h, time.Hour); r.Linearizable != "yes" || len(r.Violations) > 0 || len(r.Unjudged) > 0 {
					b.Fatalf("%s, %v, %q", r.Linearizable, len(r.Violations), r.Unjudged)
				}
			}
		})
	}
}
