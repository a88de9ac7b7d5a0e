package recording

import "hash/maphash"

// stringTable assigns numbers to strings. Its overhead is a few bytes for each string. Number 0 is the empty string.
type stringTable struct {
	seed  maphash.Seed
	bytes []byte
	ends  []uint32 // end of string i+1 in bytes
	slots []uint32 // hash table with open addressing
}

func newStringTable() *stringTable {
	return &stringTable{seed: maphash.MakeSeed(), slots: make([]uint32, 1024)}
}

// number returns the number of a string. If the string is new, number adds it to the table.
func (t *stringTable) number(text []byte) uint32 {
	if len(text) == 0 {
		return 0
	}
	if len(t.ends)*4 >= len(t.slots)*3 {
		t.grow()
	}
	slot := t.slot(text)
	if t.slots[slot] == 0 {
		t.bytes = append(t.bytes, text...)
		t.ends = append(t.ends, uint32(len(t.bytes)))
		t.slots[slot] = uint32(len(t.ends))
	}
	return t.slots[slot]
}

// slot returns the index of a string in the hash table, or the free index for it.
func (t *stringTable) slot(text []byte) int {
	mask := len(t.slots) - 1
	at := int(maphash.Bytes(t.seed, text)) & mask
	for t.slots[at] != 0 && string(t.text(t.slots[at])) != string(text) {
		at = (at + 1) & mask
	}
	return at
}

func (t *stringTable) grow() {
	t.slots = make([]uint32, 2*len(t.slots))
	for i := range t.ends {
		number := uint32(i + 1)
		t.slots[t.slot(t.text(number))] = number
	}
}

func (t *stringTable) text(number uint32) []byte {
	if number == 0 {
		return nil
	}
	from := uint32(0)
	if number > 1 {
		from = t.ends[number-2]
	}
	return t.bytes[from:t.ends[number-1]]
}

func (t *stringTable) string(number uint32) string { return string(t.text(number)) }

// full reports whether the table is almost full: its offsets have only 32 bits.
func (t *stringTable) full() bool { return len(t.bytes) > 3<<30 }
