package scenario

import (
	"encoding/json"

	"github.com/stormglass/stormglass/loadgen/internal/template"
)

// maxCompared is the number of replicas and of iterations whose object names the method distinct compares.
const maxCompared = 50

// checkBatch expands a batch and returns an error if two objects have the same name. Only validation calls it: a run
// expands its batches several times and need not repeat the check.
func (s *Scenario) checkBatch(b PlacedBatch) error {
	o, err := s.Expand(b)
	for i := 0; err == nil && i < len(b.Templates); i++ {
		err = o.distinct(i)
	}
	return err
}

// distinct reports an error if two objects of template i have the same name in the same namespace. It compares only the
// first maxCompared replicas and iterations, and the last replica and iteration.
func (o *Objects) distinct(i int) error {
	of := &o.batch.Templates[i]
	iterations := of.times(o.batch.Iterations)
	type place struct{ iteration, replica int }
	places := []place{{0, of.Replicas}, {iterations - 1, 1}, {iterations - 1, of.Replicas}}
	for n := range maxCompared {
		places = append(places, place{0, min(n+1, of.Replicas)}, place{min(n, iterations-1), 1})
	}
	compared := map[place]bool{}
	type name struct {
		namespace, kind int
		text            string
	}
	seen := map[name]bool{}
	read := o.nameReader(i)
	for _, at := range places {
		if compared[at] {
			continue
		}
		compared[at] = true
		iteration := at.iteration * of.every()
		all, err := read(iteration, at.replica)
		if err != nil {
			return err
		}
		for d, one := range all[:min(len(all), o.documents[i])] {
			key := name{o.namespace(one.Manifest, iteration), o.kindOf[i][d], one.Name}
			if one.Name != "" && seen[key] {
				return o.at(i, d, "use {{.Replica}} and {{.Iteration}} in the name", "two objects have the name %q", one.Name)
			}
			seen[key] = true
		}
	}
	return nil
}

// nameReader returns a function that renders template i for an iteration and a replica to read the objects' names; ""
// means no name. If the template has a template.Shape, the function renders only the differing parts, and returns only
// metadata.
func (o *Objects) nameReader(i int) func(iteration, replica int) ([]Object, error) {
	var outlines []template.JSON
	if o.shapes[i] != nil {
		for _, document := range o.shapes[i].Documents {
			outline, err := template.NewJSON(map[string]any{"metadata": document["metadata"]})
			if err != nil {
				outlines = nil
				break
			}
			outlines = append(outlines, outline)
		}
	}
	return func(iteration, replica int) (objects []Object, err error) {
		if outlines != nil {
			values, turn := o.values(i, iteration, replica)
			slots, ok, err := o.templates[i].Values(o.shapes[i], values, o.seed, turn)
			if err != nil {
				return nil, o.errorf(i, err)
			}
			for _, outline := range outlines {
				var manifest map[string]any
				if ok = ok && json.Unmarshal(outline.Append(nil, slots), &manifest) == nil; ok {
					objects = append(objects, describe(manifest))
				}
			}
			if ok {
				return objects, nil
			}
		}
		all, err := o.render(i, iteration, replica)
		objects = nil
		for _, manifest := range all {
			objects = append(objects, describe(manifest))
		}
		return objects, err
	}
}
