package object

import (
	"errors"
	"strconv"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

var (
	errNoAnswer    = errors.New("the answer is empty")
	errNotProtobuf = errors.New("the answer is not Kubernetes protobuf")
)

// answer holds the part of the answer to one request that has come in.
type answer struct {
	action action
	tenant int

	// What was asked for.
	protobuf bool
	gzip     bool  // may be compressed
	find     field // to be looked for in protobuf; JSON is read in any case

	begun      bool
	compressed bool // and not looked into
	json       document
	head       []byte // of protobuf: the magic and, if something is looked for, more
	found      bool
	value      []byte // of what was looked for
}

// longestHead is where the metadata of protobuf is given up: it stands first.
const longestHead = longestValue + 4<<10

// begin forgets the answer of before.
func (a *answer) begin() {
	a.begun, a.compressed, a.found = false, false, false
	a.json.reset()
	a.head, a.value = a.head[:0], a.value[:0]
}

// write takes the next piece of a 2xx answer.
func (a *answer) write(p []byte) error {
	if !a.begun {
		a.begun = true
		// gzip's first byte begins neither JSON nor protobuf. Compressed answers (over 128 KiB) are not inflated.
		a.compressed = a.gzip && p[0] == 0x1f
	}
	switch {
	case a.compressed:
		return nil
	case a.protobuf:
		return a.writeProtobuf(p)
	}
	return a.json.write(p)
}

// whole is called at the end of a 2xx answer.
func (a *answer) whole() error {
	switch {
	case !a.begun:
		return errNoAnswer
	case a.compressed:
		return nil
	case a.protobuf:
		if len(a.head) < len(protobuf.Envelope) {
			return errNotProtobuf
		}
		return nil
	}
	return a.json.whole()
}

func (a *answer) writeProtobuf(p []byte) error {
	if a.found || len(a.head) >= len(protobuf.Envelope) && a.find == noField {
		return nil
	}
	most := longestHead
	if a.find == noField {
		most = len(protobuf.Envelope)
	}
	a.head = append(a.head, p[:min(len(p), most-len(a.head))]...)
	if n := min(len(a.head), len(protobuf.Envelope)); string(a.head[:n]) != protobuf.Envelope[:n] {
		return errNotProtobuf
	}
	if a.find != noField && len(a.head) > len(protobuf.Envelope) {
		value, known := metadata(a.head[len(protobuf.Envelope):], a.find)
		a.value, a.found = append(a.value[:0], value...), known || len(a.head) == longestHead
	}
	return nil
}

// token is metadata.continue of the answer, "" if there is none.
func (a *answer) token() []byte {
	if a.protobuf {
		return a.value
	}
	return a.json.token
}

// version is metadata.resourceVersion of the answer; 0: none that is a number.
func (a *answer) version() uint64 {
	text := a.json.version
	if a.protobuf {
		text = a.value
	}
	v, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return 0
	}
	return v
}
