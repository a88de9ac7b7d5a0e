package scenario

import "strings"

func changesKind() loadKind {
	return loadKind{
		name: "changes", example: "[{name: crowd, kind: watches, count: 100, rate: 50/s}, {kind: changes, watches: crowd, rate: 5/s}]",
		results: []LoadResult{RequestResults, DeliveryResults},
		fixed:   &refusal{"leave out resource and similar fields; they are set in the watches load", "a load of changes patches the objects of its watches load"},
		fields:  func(l *Load) []field { return []field{{name: "watches", set: l.Watches != ""}} },
		validate: func(v *validator, path string, l *Load, open map[string]*Load) {
			if open == nil {
				v.fail(path+".kind", "move the load into a phase", "a load of changes cannot run in the background")
			} else if w := open[l.Watches]; w == nil {
				v.fail(path+".watches", "name a watches load of this phase, or one of an earlier phase with hold: true", "this phase has no open watches load %q", l.Watches)
			} else if !w.OwnObjects(w.Operation) {
				v.fail(path+".watches", "add object to the watches load, or let it watch "+strings.Join(Manifests[:3], ", "), "the watches load %q has no objects to change", l.Watches)
			}
		},
	}
}
