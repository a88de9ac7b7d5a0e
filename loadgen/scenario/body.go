package scenario

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"

	"github.com/stormglass/stormglass/loadgen/internal/template"
)

// bodyTurns is the number of different request bodies of an operation. The requests use them in a cycle.
const bodyTurns = 64

// RenderBodies renders all bodyTurns request bodies of an operation as JSON.
func RenderBodies(body any) ([][]byte, error) {
	t, err := template.ParseValue(body)
	if err != nil {
		return nil, err
	}
	var all [][]byte
	for turn := range bodyTurns {
		value, err := t.Value(map[string]any{"Turn": turn}, 0, uint64(turn))
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("encode the value as JSON: %w", err)
		}
		all = append(all, data)
	}
	return all, nil
}

// patchTemplate refuses a patch that is not a valid template, or that reads a missing value. Other errors may depend on
// the names of the objects, which are not known yet.
func (v *validator) patchTemplate(path string, a *Action) {
	t, err := template.ParseValue(a.Patch)
	parsed := err == nil
	if parsed {
		values := map[string]any{"Name": "name", "Namespace": "namespace", "Index": 0}
		maps.Copy(values, a.Vars)
		_, err = t.Value(values, 0, 0)
	}
	if e, ok := errors.AsType[*template.Error](err); ok && (!parsed || e.Lacks != "") {
		v.fail(path, cmp.Or(e.Hint, "the patch is a Go template that can use sprig's functions, {{.Name}}, {{.Namespace}}, {{.Index}} and vars"), "%s", e.Msg)
	}
}
