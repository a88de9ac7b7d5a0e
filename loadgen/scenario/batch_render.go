package scenario

import "fmt"

// At returns object n. The caller may modify its manifest. Calls with ascending n are the fastest.
func (o *Objects) At(n int) (Object, error) {
	i, iteration, replica, document := o.split(n)
	if first := n - document; o.rendered != first {
		all, err := o.render(i, iteration, replica)
		if err != nil {
			return Object{}, err
		}
		if len(all) != o.documents[i] {
			return Object{}, o.errorf(i, fmt.Errorf("the template renders %d manifests for replica %d of iteration %d, but %d for the first replica", len(all), replica, iteration, o.documents[i]))
		}
		o.rendered, o.held = first, all
	}
	one := describe(o.held[document])
	one.Namespace = o.namespace(one.Manifest, iteration)
	one.Placement, one.Place, one.Named = o.batch.Placement, o.place(i, document), o.named[i]
	return one, nil
}

// shape appends to o.shapes the common structure of the objects of template i. It appends nil if the objects have no
// common structure, if the template uses .Namespace, or if the manifest names a namespace and there are groups of
// namespaces.
func (o *Objects) shape(i int) error {
	values, turn := o.values(i, 0, 1)
	s, err := o.templates[i].NewShape(values, o.seed, turn)
	if err != nil {
		return o.errorf(i, err)
	}
	if s != nil && len(s.Documents) == o.documents[i] && !o.named[i] {
		for d, document := range s.Documents {
			meta, _ := document["metadata"].(map[string]any)
			one, k := describe(document), o.kinds[o.kindOf[i][d]]
			if one.APIVersion != k.APIVersion || one.Kind != k.Kind || o.indexes != nil && meta["namespace"] != nil {
				s = nil // the kind or the namespace differs between objects
				break
			}
		}
		o.shapes = append(o.shapes, s)
		return nil
	}
	o.shapes = append(o.shapes, nil)
	return nil
}

// DocumentAt returns the indexes of the template and of the YAML document from which object n is rendered. All objects
// with the same two indexes have the same Outline.
func (o *Objects) DocumentAt(n int) [2]int {
	i, _, _, d := o.split(n)
	return [2]int{i, d}
}

// Outline returns the manifest that all objects with the same DocumentAt as object n share. Placeholders, called slots,
// mark the parts that differ; `slots` is their number. Outline returns nil if the shared manifest is unknown.
func (o *Objects) Outline(n int) (outline *Object, slots int) {
	i, _, _, d := o.split(n)
	s := o.shapes[i]
	if s == nil {
		return nil, 0
	}
	one := describe(s.Documents[d])
	one.Placement, one.Place = o.batch.Placement, o.place(i, d)
	return &one, s.Slots()
}

// Slots returns the values of object n for the slots in its Outline, and the index of its namespace. If ok is false,
// use At instead.
func (o *Objects) Slots(n int) (slots []string, namespace int, ok bool, err error) {
	i, iteration, replica, document := o.split(n)
	if o.shapes[i] == nil {
		return nil, 0, false, nil
	}
	if first := n - document; o.filled != first {
		values, turn := o.values(i, iteration, replica)
		if o.slots, o.fits, err = o.templates[i].Values(o.shapes[i], values, o.seed, turn); err != nil {
			return nil, 0, false, o.errorf(i, err)
		}
		o.filled = first
	}
	return o.slots, o.namespace(nil, iteration), o.fits, nil
}

// place returns the location at which a document of a template begins.
func (o *Objects) place(i, document int) string {
	t := &o.batch.Templates[i]
	line := o.lines[i][document]
	switch {
	case t.from != "":
		return fmt.Sprintf("%s:%d", t.from, line)
	case t.Text != "":
		return fmt.Sprintf("%s.templates[%d], line %d", o.batch.Path, i, line)
	}
	return fmt.Sprintf("%s.templates[%d]", o.batch.Path, i)
}
