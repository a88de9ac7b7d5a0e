package scenario

func historyKind() loadKind {
	return loadKind{
		name: "history", example: "[{kind: history}]", results: []LoadResult{HistoryResults},
		objects:    5,
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
		validate: func(v *validator, path string, l *Load, _ map[string]*Load) { v.history(path, l) },
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
