package capture

import "hash/maphash"

// stringTable assigns a number to each distinct string, with a few bytes of overhead per string. The empty string has
// number 0.
type stringTable struct {
	seed  maphash.Seed
	bytes []byte
	ends  []uint32 // ends[i] is the offset in bytes after the string with number i+1
	slots []uint32 // hash table of numbers with open addressing; 0 is a free slot
}

func newStringTable() *stringTable {
	return &stringTable{seed: maphash.MakeSeed(), slots: make([]uint32, 1024)}
}

// number returns the number of a string, and adds the string if it is new.
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

// slot returns the index of a string in slots. For a new string, it returns the index of the free slot to use.
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

// full reports whether the table is almost full. The limit exists because the offsets in the table have only 32 bits.
func (t *stringTable) full() bool { return len(t.bytes) > 3<<30 }
