package object

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
)

// slot is a placeholder in a body for a value that differs between objects.
type slot string

// Slots of a manifest. A private-use character of Unicode marks the beginning and the end of a slot.
const (
	mark          = "\ue000"
	slotName      = slot(mark + "name" + mark)
	slotNamespace = slot(mark + "namespace" + mark)
	slotPayload   = slot(mark + "payload" + mark)
	slotVersion   = slot(mark + "version" + mark)
)

// body is a manifest in JSON, split at its slots.
type body []part

// part is a piece of JSON text and the slot after it. The last part of a body has no slot.
type part struct {
	text []byte
	slot slot
}

// compile encodes a manifest as JSON and splits it at its slots.
func compile(manifest map[string]any) (body, error) {
	text, err := json.Marshal(manifest)
	if err != nil {
		return nil, fmt.Errorf("the manifest cannot be written as JSON: %w", err)
	}
	var b body
	for {
		before, after, found := bytes.Cut(text, []byte(mark))
		if !found {
			return append(b, part{text: text}), nil
		}
		name, rest, _ := bytes.Cut(after, []byte(mark))
		b = append(b, part{before, slot(mark + string(name) + mark)})
		text = rest
	}
}

type values struct {
	stem      string // an object's name without its number
	number    int64
	namespace string
	payload   payload
	size      int
	turn      int64
	version   uint64
}

func (b body) append(dst []byte, v *values) []byte {
	for i := range b {
		dst = append(dst, b[i].text...)
		switch b[i].slot {
		case slotName:
			dst = strconv.AppendInt(append(dst, v.stem...), v.number, 10)
		case slotNamespace:
			dst = append(dst, v.namespace...)
		case slotPayload:
			dst = v.payload.append(dst, v.size, v.turn)
		case slotVersion:
			dst = strconv.AppendUint(dst, v.version, 10)
		}
	}
	return dst
}

const letters = "abcdefghijklmnopqrstuvwxyz0123456789"

// payload is random text for objects. It differs for each turn (the number of an object's update), because the API
// server does not write an update without changes. Its characters are valid base64 and need no escaping in JSON.
type payload struct {
	text []byte // random letters, twice as many as the largest object needs
}

func newPayload(largest int, seed int64) payload {
	random := rand.New(rand.NewPCG(uint64(seed), 0x7061796c6f6164))
	text := make([]byte, 2*largest)
	for i := range text {
		text[i] = letters[random.IntN(len(letters))]
	}
	return payload{text}
}

// counted is the number of letters at the beginning of a payload that encode the turn (the number of the update).
const counted = 8

// append appends `size` letters of payload for the given turn. If `size` is at least 8, the payloads of any two turns
// differ.
func (p payload) append(b []byte, size int, turn int64) []byte {
	if size <= 0 {
		return b
	}
	n := uint64(turn)
	from := int(n % uint64(size))
	at := len(b)
	b = append(b, p.text[from:from+size]...)
	for i := range min(size, counted) {
		b[at+i] = letters[n%uint64(len(letters))]
		n /= uint64(len(letters))
	}
	return b
}
