package scenario

func objectsKind() loadKind {
	return loadKind{
		name: "objects", example: "[{kind: objects, rate: 100/s, templates: [{file: web.yaml, replicas: 1000}]}]", results: []LoadResult{RequestResults},
		fixed: &refusal{"leave out verb, resource and similar fields", "a load of kind objects creates the objects of its templates"},
		fields: func(l *Load) []field {
			return []field{
				{name: "templates", set: len(l.Templates) > 0}, {name: "iterations", set: l.Iterations != 0},
				{name: "fromIteration", set: l.FromIteration != 0}, {name: "toIteration", set: l.ToIteration != 0},
				{name: "namespaceGroup", set: l.NamespaceGroup != ""},
				{name: "iterationsPerNamespace", set: l.IterationsPerNamespace != 0}, {name: "vars", set: len(l.Vars) > 0}, {name: "placement", set: l.Placement != ""},
			}
		},
		defaults: func(l *Load) {
			b := l.Batch()
			b.setDefaults()
			l.Templates, l.Iterations, l.Placement = b.Templates, b.Iterations, b.Placement
		},
		namespaces: true,
		validate: func(v *validator, path string, l *Load, open map[string]*Load) {
			if len(l.Templates) == 0 {
				v.fail(path+".templates", "write templates: [{file: web.yaml, replicas: 1000}]", "is missing")
				return
			}
			if open == nil {
				v.fail(path+".kind", "move the load into a phase", "a load of objects cannot run in the background")
			}
			v.batch(path, l.Batch())
		},
	}
}
