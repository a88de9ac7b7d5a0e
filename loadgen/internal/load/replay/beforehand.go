package replay

import "github.com/stormglass/stormglass/loadgen/internal/recording"

// Made is an object that the load creates before the replay, because a request needs it.
type Made struct {
	Object int32
	Copy   int16
	Size   int32 // size in bytes of the object's first recorded request body; 0 if unknown
}

// Beforehand returns the objects that must exist when the schedule `all` begins, in the order of their first requests.
// These are the objects that were read, updated, patched or deleted in the recording before they were created. The
// first conclusive answer in the recording decides (see presence). For example, a 404 or a successful create shows that
// the object did not exist, and a successful read shows that the object existed. Beforehand ignores entries for which
// counts returns false.
func Beforehand(t *recording.Recording, all []Arrival, copies int, counts func(entry int32) bool) []Made {
	decided := make([]bool, len(t.Objects)*copies)
	sizes := make([]int32, len(t.Objects))
	for _, e := range t.Entries {
		if e.Object != recording.None && sizes[e.Object] == 0 {
			sizes[e.Object] = e.Size
		}
	}
	var made []Made
	for _, a := range all {
		e := &t.Entries[a.Entry]
		if e.Object == recording.None {
			continue
		}
		i := int(e.Object)*copies + int(a.Copy)
		if decided[i] || counts != nil && !counts(a.Entry) {
			continue
		}
		switch presence(&t.Shapes[e.Shape], e.Code) {
		case present:
			made = append(made, Made{e.Object, a.Copy, sizes[e.Object]})
			decided[i] = true
		case absent:
			decided[i] = true
		}
	}
	return made
}

type existence uint8

const (
	unknown existence = iota
	present
	absent
)

// presence infers from the response to a request whether the object existed when the request arrived. A code of 0 means
// that the recording has no codes, and counts as success.
func presence(s *recording.Shape, code int16) existence {
	if s.Collective() || s.DryRun {
		return unknown
	}
	success := code == 0 || 200 <= code && code < 300
	switch creates := s.Verb == "create" && s.Subresource == ""; {
	case creates && code == 409:
		return present
	case creates && success:
		return absent
	case creates:
		return unknown
	case code == 404:
		return absent
	case code == 201 && (s.Verb == "patch" || s.Verb == "update") && s.Subresource == "":
		return absent // an apply, or an update that created the object
	case success, code == 409, code == 304:
		return present
	}
	return unknown
}
