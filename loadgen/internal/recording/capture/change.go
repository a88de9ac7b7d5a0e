package capture

import (
	"math"

	"github.com/stormglass/stormglass/loadgen/internal/auditlog"
)

// unknownUser is the recorded user name of a client whose program is known but whose user is not.
const unknownUser = "unknown"

// change is a write that the recorder inferred from a changed object, because there is no log of requests. actor is the
// program that wrote. reason is the reason why the recording excludes the write, or "".
type change struct {
	at                                              int64 // time of the write, in microseconds since 1970
	actor, verb, group, version, resource           string
	subresource, namespace, name, patchType, reason string
	code, size                                      int
}

// change records a write. The duration of the write is unknown.
func (rec *recorder) change(c change) {
	number := func(text string) uint32 { return rec.strings.number([]byte(text)) }
	s := shape{dropped: c.reason}
	if s.dropped == "" {
		s = shape{
			user: number(unknownUser), agent: number(c.actor), verb: number(c.verb), group: number(c.group), version: number(c.version), resource: number(c.resource),
			subresource: number(c.subresource), namespace: number(c.namespace), patchType: c.patchType,
		}
	}
	rec.changes++
	rec.records.add(record{
		id: rec.changes, at: c.at, end: c.at, stage: auditlog.ResponseComplete, code: uint16(c.code),
		shape: rec.records.shape(s), name: number(c.name), size: uint32(min(c.size, math.MaxUint32)),
	})
}
