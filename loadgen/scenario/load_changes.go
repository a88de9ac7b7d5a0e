package scenario

import "strings"

func changesKind() loadKind {
	return loadKind{
		name: "changes", example: "[{name: crowd, kind: watches, count: 100, rate: 50/s}, {kind: changes, watches: crowd, rate: 5/s}]",
		results: []LoadResult{RequestResults, DeliveryResults},
		fixed:   &refusal{"leave out resource and similar fields: the watches have them", "changes patch the objects that their watches watch"},
		fields:  func(l *Load) []field { return []field{{name: "watches", set: l.Watches != ""}} },
		validate: func(v *validator, path string, l *Load, open map[string]*Load) {
			if open == nil {
				v.fail(path+".kind", "write changes in a phase", "changes cannot run in the background")
			} else if w := open[l.Watches]; w == nil {
				v.fail(path+".watches", "name a watches load of this phase, or one held from an earlier phase", "no load of watches named %q is open in this phase", l.Watches)
			} else if !w.OwnObjects(w.Operation) {
				v.fail(path+".watches", "give the watches an object, or let them watch "+strings.Join(Manifests[:3], ", "), "the watches load %q has no objects to change", l.Watches)
			}
		},
	}
}
