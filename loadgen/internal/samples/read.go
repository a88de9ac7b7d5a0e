package samples

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/stormglass/stormglass/loadgen/result"
)

// Read reads the slots of the run in dir, in the order of their time. A last
// line that was cut off, as by a kill, is left out. A run without the file has
// no slots. Every error is a *result.Damaged.
func Read(dir string) ([]Slot, error) {
	slots, err := result.ReadLines[Slot](dir, result.PulseFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for i := range slots {
		if i > 0 && slots[i].Begin < slots[i-1].Begin {
			return nil, &result.Damaged{File: result.PulseFile, Err: fmt.Errorf("line %d: its slot is before the one above", i+1)}
		}
	}
	return slots, err
}

// Check reports whether a recorder may have written the slot.
func (s Slot) Check() error {
	const longest = 1 << 40 // milliseconds: 35 years
	if s.Begin <= 0 || s.Millis <= 0 || s.Millis > longest || s.Begin > 4*longest {
		return errors.New("it is no slot: it has no time or no length")
	}
	for load, r := range s.Requests {
		counts := []int64{r.Succeeded, r.Unsent}
		for _, n := range r.Failed {
			counts = append(counts, n)
		}
		if !countable(counts...) || r.Slowest < 0 {
			return fmt.Errorf("requests of %s: a number that nothing counts", load)
		}
	}
	for load, r := range s.Streams {
		if !countable(r.Breaks, r.Relists, r.Delivered) {
			return fmt.Errorf("watches of %s: a number that nothing counts", load)
		}
	}
	return nil
}

func countable(counts ...int64) bool {
	const most = 1e12 // in a tenth of a second, and sums of them do not overflow
	for _, n := range counts {
		if n < 0 || n > most {
			return false
		}
	}
	return true
}
