package workload

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/protobuf"
)

// page is one page of a LIST.
type page struct {
	objects                    []object
	resourceVersion, continues string
}

func decodeList(k kind, data []byte) (page, error) {
	var p page
	msg, err := protobuf.Unwrap(data)
	if err != nil {
		return p, err
	}
	meta, err := protobuf.List(msg, func(item []byte) error {
		o, err := decode(k, item)
		p.objects = append(p.objects, o)
		return err
	})
	p.resourceVersion, p.continues = meta.ResourceVersion, meta.Continue
	return p, err
}

// readFrame reads one length-prefixed frame of a protobuf watch into buf,
// which it grows as needed and returns.
func readFrame(r io.Reader, buf []byte) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return buf, err
	}
	n := int(binary.BigEndian.Uint32(head[:]))
	if n > maxFrame {
		return buf, fmt.Errorf("a watch event of %d bytes", n)
	}
	if cap(buf) < n {
		buf = make([]byte, n)
	}
	buf = buf[:n]
	_, err := io.ReadFull(r, buf)
	return buf, err
}

// decodeEvent reads a watch event: its type and its object.
func decodeEvent(k kind, frame []byte) (eventType string, o object, err error) {
	eventType, msg, err := protobuf.Event(frame)
	if err != nil {
		return "", object{}, err
	}
	if eventType == "ERROR" {
		k = statusKind
	}
	o, err = decode(k, msg)
	return eventType, o, err
}
