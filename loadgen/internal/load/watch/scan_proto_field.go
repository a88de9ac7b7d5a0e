package watch

// protoLevel is the nesting level of the message that the scanner is reading. The levels are in order from the
// outermost to the innermost.
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

// protoFields maps field numbers in generated.proto to the fields that the scanner needs, for each message.
var protoFields = [protoLevels][13]field{
	protoEvent:     {1: fieldType, 2: fieldDescend},
	protoExtension: {1: fieldDescend},
	protoEnvelope:  {2: fieldDescend, 3: fieldEncoding},
	protoObject:    {1: fieldDescend, 6: fieldCode},
	protoMetadata:  {1: fieldName, 3: fieldNamespace, 6: fieldRV, 12: fieldDescend},
	protoEntry:     {1: fieldKey, 2: fieldValue},
}

// meaning returns the field that the given field number means in the current message.
func (s *protoScanner) meaning(number int32) field {
	switch {
	case s.level == protoMetadata && s.root == protoEnvelope: // a ListMeta
		if number == 2 {
			return fieldRV
		}
	case s.level == protoEntry && number == 2 && s.named && s.entry == noField:
	case int(number) < len(protoFields[s.level]):
		return protoFields[s.level][number]
	}
	return noField
}

func (s *protoScanner) keep(token []byte) error {
	switch s.field {
	case fieldEncoding:
		if len(token) > 0 {
			return malformed("an object has the content encoding %q", token)
		}
	case fieldKey:
		s.named, s.entry = true, annotation(token)
		s.ev.set(s.entry, nil)
	case fieldValue:
		if !s.named {
			return malformed("an annotation's value precedes its key")
		}
		s.ev.set(s.entry, token)
	default:
		s.ev.set(s.field, token)
	}
	return nil
}
