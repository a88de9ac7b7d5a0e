package scenario

import (
	"fmt"
	"slices"
)

func requestsKind() loadKind {
	return loadKind{
		name: "requests", example: "[{kind: requests, verb: get, rate: 50/s}]", results: []LoadResult{RequestResults},
		objects: 100, manifests: true,
		fields: func(l *Load) []field {
			return []field{
				{name: "verb", set: l.Verb != ""}, {name: "mix", set: len(l.Mix) > 0}, {name: "tenants", set: len(l.Tenants) > 0},
				{name: "limit", set: l.Limit != 0}, {name: "allPages", set: l.AllPages}, {name: "resourceVersion", set: l.ResourceVersion != ""},
			}
		},
		validate: func(v *validator, path string, l *Load, _ map[string]*Load) { v.requests(path, l) },
	}
}

func (v *validator) requests(path string, l *Load) {
	if len(l.Mix) == 0 {
		v.operation(path, &l.Operation, l)
	}
	for i := range l.Mix {
		v.operation(fmt.Sprintf("%s.mix[%d]", path, i), &l.Mix[i], l)
		v.weight(fmt.Sprintf("%s.mix[%d].weight", path, i), l.Mix[i].Weight)
	}
	seen := map[string]bool{}
	for i, t := range l.Tenants {
		at := fmt.Sprintf("%s.tenants[%d]", path, i)
		v.uniqueName(at, "tenant", t.Name, seen)
		v.weight(at+".share", t.Share)
		if slices.Contains(t.Groups, "system:masters") {
			v.fail(at+".groups", "use another group", "system:masters is exempt from priority and fairness, so the API server would never queue or reject requests of this tenant")
		}
	}
}
