package watch

// level is the object being read. They nest in this order.
type level uint8

const (
	outside level = iota
	levelEvent
	levelObject
	levelMetadata
	levelAnnotations
)

type field uint8

const (
	noField field = iota
	fieldType
	fieldCode
	fieldRV
	fieldName
	fieldNamespace
	fieldStamp
	fieldEnds
	fieldDescend // the object of the next level
)

func fieldOf(l level, key []byte) field {
	switch l {
	case levelEvent:
		switch string(key) {
		case "type":
			return fieldType
		case "object":
			return fieldDescend
		}
	case levelObject:
		switch string(key) {
		case "metadata":
			return fieldDescend
		case "code":
			return fieldCode
		}
	case levelMetadata:
		switch string(key) {
		case "annotations":
			return fieldDescend
		case "resourceVersion":
			return fieldRV
		case "name":
			return fieldName
		case "namespace":
			return fieldNamespace
		}
	case levelAnnotations:
		switch string(key) {
		case StampAnnotation:
			return fieldStamp
		case endAnnotation:
			return fieldEnds
		}
	}
	return noField
}
