package importer

import (
	"path/filepath"
	"slices"

	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

const definitionKind = "CustomResourceDefinition"

// customGroups returns the API groups of the custom resources that jobs create.
func (b *burner) customGroups() (groups []string) {
	for _, j := range b.jobs {
		if j.kind != "create" {
			continue
		}
		for _, o := range j.objects {
			data, err := userfile.Read(filepath.Join(b.dir, o.template), userfile.Text)
			if err != nil {
				continue // reported when the object's creation is converted
			}
			objects, err := render(b.limits, string(data)+b.functions, b.values(j, o, 0, 1))
			if err != nil {
				continue
			}
			for _, m := range objects {
				if scenario.IsCustom(resourceOf(m.apiVersion(), m.kind())) {
					groups = append(groups, groupOf(m.apiVersion()))
				}
			}
		}
	}
	return groups
}

// definition moves a template of CustomResourceDefinitions to the objects that a run creates before its first phase, if
// a job creates custom resources with these definitions. A run checks its loads at the start, which requires the
// definitions. It reports whether it moved the template.
func (b *burner) definition(j *burnJob, t *burnTemplate) bool {
	needed := func(m manifest) bool {
		return m.kind() == definitionKind && slices.Contains(b.custom, m.at("spec").text("group"))
	}
	if !slices.ContainsFunc(t.objects, needed) || slices.ContainsFunc(t.objects, func(m manifest) bool { return m.kind() != definitionKind }) {
		return false
	}
	b.objects = append(b.objects, block("iterations", when(j.iterations > 1, j.iterations), "vars", flow("JobName", j.name), "templates", []*mapping{t.at}))
	t.object.item.remark(t.at.Node, t.object.at("objectTemplate"), "this CustomResourceDefinition is created before the first phase, because a later job creates objects of its kind")
	j.defines = true
	return true
}
