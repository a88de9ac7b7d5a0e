package protobuf

import "google.golang.org/protobuf/encoding/protowire"

// Object holds those fields of a Kubernetes object that this program uses. Its byte slices point into the message from
// which it was read.
type Object struct {
	Name, Namespace, UID, ResourceVersion []byte
	Generation                            int64
	Deleting                              bool   // whether the object has a deletionTimestamp
	Spec, Status                          []byte // encoded protobuf messages
}

// ReadObject reads an object from its protobuf message. It calls entry for each label and each annotation.
func ReadObject(msg []byte, entry func(key, value []byte)) (o Object, err error) {
	err = Fields(msg, func(num protowire.Number, b []byte, _ uint64) error {
		switch num {
		case objectMetadata:
			return o.metadata(b, entry)
		case objectSpec:
			o.Spec = b
		case objectStatus:
			o.Status = b
		}
		return nil
	})
	return o, err
}

func (o *Object) metadata(msg []byte, entry func(key, value []byte)) error {
	return Fields(msg, func(num protowire.Number, b []byte, v uint64) error {
		switch num {
		case 1:
			o.Name = b
		case 3:
			o.Namespace = b
		case 5:
			o.UID = b
		case 6:
			o.ResourceVersion = b
		case 7:
			o.Generation = int64(v)
		case 9:
			o.Deleting = true
		case 11, 12: // labels, annotations
			key, value, err := pair(b)
			if err == nil {
				entry(key, value)
			}
			return err
		}
		return nil
	})
}

// pair returns the fields 1 and 2 of a message, such as the key and value of a map entry, or the type and status of a
// condition.
func pair(msg []byte) (first, second []byte, err error) {
	err = Fields(msg, func(num protowire.Number, b []byte, _ uint64) error {
		switch num {
		case 1:
			first = b
		case 2:
			second = b
		}
		return nil
	})
	return first, second, err
}

// Field returns the contents of the last field with the given number, or nil if there is no such field.
func Field(msg []byte, number protowire.Number) (contents []byte, err error) {
	err = Fields(msg, func(num protowire.Number, b []byte, _ uint64) error {
		if num == number {
			contents = b
		}
		return nil
	})
	return contents, err
}

// Ints stores the values of numeric fields: the value of the field with the number n in *to[n].
func Ints(msg []byte, to map[protowire.Number]*int64) error {
	return Fields(msg, func(num protowire.Number, _ []byte, v uint64) error {
		if p := to[num]; p != nil {
			*p = int64(v)
		}
		return nil
	})
}

// Ready returns the status of the condition Ready in an object's status. The parameter conditions is the number of the
// field that holds the conditions.
func Ready(status []byte, conditions protowire.Number) (ready []byte, err error) {
	err = Fields(status, func(num protowire.Number, b []byte, _ uint64) error {
		if num != conditions {
			return nil
		}
		kind, is, err := pair(b)
		if string(kind) == "Ready" {
			ready = is
		}
		return err
	})
	return ready, err
}
