package scenario

import (
	"fmt"
	"math"
)

// MaxHistory is the maximum number of operations in a history. One arrival can cause two operations: a read, and a
// write that depends on this read.
const MaxHistory = 100_000

func historyKind() loadKind {
	return loadKind{
		name: "history", example: "[{kind: history}]", results: []LoadResult{HistoryResults},
		unpaced: true, objects: 5,
		fixed:      &refusal{"leave out verb, resource and similar fields", "a history load reads and writes only its own ConfigMaps"},
		operations: []Operation{{Verb: "update", Resource: "configmaps", Form: "object", Encoding: "json", Scope: "namespace"}},
		fields: func(l *Load) []field {
			return []field{{name: "clients", set: l.Clients != 0}, {name: "watchers", set: l.Watchers != 0}}
		},
		defaults: func(l *Load) {
			orDefault(&l.Clients, 5)
			orDefault(&l.Watchers, 3)
			orDefault(&l.Rate, 20)
		},
		validate:  func(v *validator, path string, l *Load, _ map[string]*Load) { v.history(path, l) },
		plausible: (*forecast).history,
	}
}

func (v *validator) history(path string, l *Load) {
	v.between(path+".clients", float64(l.Clients), 1, 100)
	v.between(path+".watchers", float64(l.Watchers), 0, 100)
	v.between(path+".objects", float64(l.Objects), 1, 1000)
	if v.s.doc != nil { // 0/s is valid for other loads, but a history would replace it by the default
		var written Rate
		if text := v.s.doc.Text(path + ".rate"); text != "" && written.UnmarshalText([]byte(text)) == nil && written == 0 {
			v.fail(path+".rate", "write rate: 20/s", "a history load with a rate of %s sends nothing", text)
		}
	}
	if l.Rate > 1000 {
		v.fail(path+".rate", "at most 1000/s, because every operation is recorded and checked", "%s is too high for a history load", l.Rate)
	}
}

// history reports an error for a history that reaches MaxHistory before its phases of fixed length end.
func (c *forecast) history(l PlacedLoad) {
	length := c.v.s.FixedLength(l)
	if most := MaxHistory / 2 / length.Seconds(); length > 0 && float64(l.Rate) > most {
		hint := "a shorter phase"
		if most >= 0.1 {
			hint = fmt.Sprintf("use at most %s/s, or a shorter phase", plain(math.Floor(most*10)/10))
		}
		c.v.fail(l.Path+".rate", hint, "at %s for %s there may be %.0f operations, but a history load can record only %d", l.Rate, Duration(length), 2*float64(l.Rate)*length.Seconds(), MaxHistory)
	}
}
