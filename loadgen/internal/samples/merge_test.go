package samples

import (
	"testing"
	"time"
)

func slot(begin, millis, succeeded int64) Slot {
	return Slot{Begin: begin, Millis: millis, Requests: map[string]RequestSlot{"reads": {Succeeded: succeeded, Slowest: float64(succeeded), Failed: map[string]int64{"500": 1}}}}
}

// A merged slot ends where slots of all recorders end, and sums their counts.
func TestMergedSlotsEndWhereAllEnd(t *testing.T) {
	m := newMerger(2)
	if got := m.add(0, slot(1000, 100, 1)); got != nil {
		t.Errorf("merged before the other's: %+v", got)
	}
	got := m.add(1, slot(1000, 100, 2))
	if len(got) != 1 || got[0].Begin != 1000 || got[0].Millis != 100 || got[0].Requests["reads"].Succeeded != 3 ||
		got[0].Requests["reads"].Slowest != 2 || got[0].Requests["reads"].Failed["500"] != 2 {
		t.Errorf("two slots of the same time: %+v", got)
	}
	// The second recorder ran late: its slot is as long as three slots of the first one.
	for i := range int64(2) {
		if got := append(m.add(0, slot(1100+100*i, 100, 1)), []Slot{}...); len(got) > 0 {
			t.Errorf("merged before the other's: %+v", got)
		}
	}
	if got := m.add(1, slot(1100, 300, 5)); len(got) > 0 {
		t.Errorf("a slot ends within another: %+v", got)
	}
	got = m.add(0, slot(1300, 100, 1))
	if len(got) != 1 || got[0].Begin != 1100 || got[0].Millis != 300 || got[0].Requests["reads"].Succeeded != 8 {
		t.Errorf("a long slot: %+v", got)
	}
	// The merger does not wait for a recorder that has ended, but counts its slots.
	m.add(1, slot(1400, 100, 4))
	if got := m.end(1); len(got) > 0 {
		t.Errorf("merged without the first's: %+v", got)
	}
	got = append(m.add(0, slot(1400, 100, 1)), m.add(0, slot(1500, 100, 2))...)
	if len(got) != 2 || got[0].Requests["reads"].Succeeded != 5 || got[1].Requests["reads"].Succeeded != 2 {
		t.Errorf("after the end of one: %+v", got)
	}
}

// A recorder that merges writes the slots of sending recorders to its file.
func TestRecorderWritesMergedSlots(t *testing.T) {
	dir := t.TempDir()
	r, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Merge(2)
	begin := boundary(time.Now()).Add(Width).UnixMilli()
	for of := range 2 {
		for i := range int64(3) {
			if err := r.Add(of, slot(begin+100*i, 100, int64(of+1))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	slots, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for i, s := range slots {
		sum += s.Requests["reads"].Succeeded
		if i > 0 && slots[i-1].Begin+slots[i-1].Millis > s.Begin {
			t.Errorf("slots overlap: %+v", slots)
		}
	}
	if sum != 9 {
		t.Errorf("%d requests in the file, want 9: %+v", sum, slots)
	}
	if err := r.Add(0, Slot{Begin: 1, Millis: -1}); err == nil {
		t.Error("Add accepts a slot without a length")
	}
}

// A sending recorder cuts slots at multiples of their width.
func TestSentSlotsAreAligned(t *testing.T) {
	now := time.UnixMilli(1_700_000_000_040)
	var sent []Slot
	r := Sending(func(s Slot) error { sent = append(sent, s); return nil }, func() time.Time { return now })
	r.Requests("reads").Succeeded(time.Millisecond, 0)
	now = now.Add(160 * time.Millisecond)
	if err := r.flush(boundary(now)); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if len(sent) != 2 || sent[0].Begin != 1_700_000_000_000 || sent[0].Millis != 200 || sent[0].Requests["reads"].Succeeded != 1 || sent[1].Begin != 1_700_000_000_200 {
		t.Errorf("sent %+v", sent)
	}
}

// A recorder that merges passes on the durations of sending recorders, and does not write them.
func TestDurationsOfSendersAreFollowed(t *testing.T) {
	dir := t.TempDir()
	r, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	var w Window
	r.Follow(w.Add)
	r.Merge(1)
	var sent []Slot
	from := time.Now()
	sender := Sending(func(s Slot) error { sent = append(sent, s); return nil }, func() time.Time { return from })
	sender.Requests("reads").Succeeded(3*time.Second, 0)
	sender.Requests("reads").Succeeded(time.Millisecond, 0)
	for _, err := range []error{sender.Close(), r.Add(0, sent[0]), r.Close()} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if n := w.Over(2 * time.Second); n != 1 {
		t.Errorf("%d requests took over 2 s, want 1", n)
	}
	slots, err := Read(dir)
	if err != nil || len(slots) != 1 || slots[0].Requests["reads"].Succeeded != 2 || slots[0].Requests["reads"].Took != nil {
		t.Errorf("written: %+v, %v", slots, err)
	}
	s := sent[0]
	s.Requests["reads"].Took[0].At = buckets
	if s.Check() == nil {
		t.Error("Check accepts a bucket that does not exist")
	}
}
