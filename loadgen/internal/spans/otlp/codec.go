package otlp

import (
	"fmt"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/encoding/proto"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// Limits of an export request.
const (
	// maxElements is the maximum number of spans, attributes, events and other messages in a request. An empty message
	// takes 2 bytes in the request, and up to 250 bytes in memory.
	maxElements = 200_000
	// deepest is the maximum nesting depth of messages. Lists in attributes have no other limit.
	deepest = 100
)

// codec decodes protobuf. It refuses requests with more than maxElements messages before it decodes them.
type codec struct {
	encoding.CodecV2
	request shape
}

// shape says which fields of a message contain messages or repeated strings.
type shape map[protowire.Number]shape

func newCodec() codec {
	value := shape{}
	attribute := shape{2: value}
	value[5], value[6] = shape{1: value}, shape{1: attribute} // a list, and a list of attributes
	resource := shape{1: attribute, 3: {3: {}, 4: {}}}
	span := shape{9: attribute, 11: {3: attribute}, 13: {4: attribute}, 15: {}}
	scopeSpans := shape{1: {3: attribute}, 2: span}
	return codec{encoding.GetCodecV2(proto.Name), shape{1: {1: resource, 2: scopeSpans}}}
}

// Unmarshal implements encoding.CodecV2.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	buffer := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer buffer.Free()
	if n := count(buffer.ReadOnlyData(), c.request, 0); n > maxElements {
		return fmt.Errorf("the request has more than %d spans, attributes and events, or they are nested too deeply", maxElements)
	}
	return c.CodecV2.Unmarshal(mem.BufferSlice{buffer}, v)
}

// count returns the number of messages in the message m. It stops at the first byte that is not protobuf; decoding then
// fails.
func count(m []byte, s shape, depth int) (n int) {
	if depth > deepest {
		return maxElements + 1
	}
	for len(m) > 0 {
		number, kind, length := protowire.ConsumeTag(m)
		if length < 0 {
			return n
		}
		m = m[length:]
		if length = protowire.ConsumeFieldValue(number, kind, m); length < 0 {
			return n
		}
		if inner, ok := s[number]; ok && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(m)
			n += 1 + count(value, inner, depth+1)
		}
		m = m[length:]
	}
	return n
}
