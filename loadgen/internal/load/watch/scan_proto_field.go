package watch

// protoLevel is the message being read. They nest in this order.
type protoLevel uint8

const (
	protoEvent     protoLevel = iota // meta/v1 WatchEvent
	protoExtension                   // runtime.RawExtension
	protoEnvelope                    // "k8s\0" and runtime.Unknown
	protoObject                      // any object, list or meta/v1 Status
	protoMetadata                    // ObjectMeta or ListMeta
	protoEntry                       // one annotation
	protoLevels
)

type protoField uint8

const (
	protoSkip protoField = iota
	protoDescend
	protoType
	protoCode
	protoEncoding
	protoName
	protoNamespace
	protoRV
	protoKey
	protoValue
)

func (s *protoScanner) keep(token []byte) error {
	e := &s.ev
	switch s.field {
	case protoType:
		e.kind = kindOf(token)
	case protoEncoding:
		if len(token) > 0 {
			return malformed("encoding %q of an object", token)
		}
	case protoName:
		e.name = hash(token)
	case protoNamespace:
		e.namespace = hash(token)
	case protoRV:
		e.rv = parseVersion(token)
	case protoKey:
		s.named, s.entry = true, fieldOf(levelAnnotations, token)
		switch s.entry {
		case fieldStamp:
			e.stamp = e.stamp[:0]
		case fieldEnds:
			e.ends = false
		}
	case protoValue:
		if !s.named {
			return malformed("an annotation's value before its key")
		}
		switch s.entry {
		case fieldStamp:
			e.stamp = append(e.stamp[:0], token...)
		case fieldEnds:
			e.ends = string(token) == "true"
		}
	}
	return nil
}

// meaning says what a field is to us, by the numbers of generated.proto.
func (s *protoScanner) meaning(number int32) protoField {
	switch s.level {
	case protoEvent:
		switch number {
		case 1:
			return protoType
		case 2:
			return protoDescend
		}
	case protoExtension:
		if number == 1 {
			return protoDescend
		}
	case protoEnvelope:
		switch number {
		case 2:
			return protoDescend
		case 3:
			return protoEncoding
		}
	case protoObject:
		switch number {
		case 1:
			return protoDescend
		case 6:
			return protoCode
		}
	case protoMetadata:
		switch {
		case number == 2 && s.root == protoEnvelope: // of a ListMeta
			return protoRV
		case s.root == protoEnvelope:
		case number == 1:
			return protoName
		case number == 3:
			return protoNamespace
		case number == 6:
			return protoRV
		case number == 12:
			return protoDescend
		}
	case protoEntry:
		switch {
		case number == 1:
			return protoKey
		case number == 2 && s.named && s.entry == noField:
			return protoSkip
		case number == 2:
			return protoValue
		}
	}
	return protoSkip
}
