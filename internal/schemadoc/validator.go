package schemadoc

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"
)

// Validator returns a function that validates YAML against a JSON Schema, as an editor does.
func Validator(t *testing.T, schema []byte) func(text []byte) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	compiled, err := c.Compile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	return func(text []byte) error {
		value, err := jsonOf(text)
		if err != nil {
			return err
		}
		return compiled.Validate(value)
	}
}

// jsonOf converts the first nonempty document of a YAML file to JSON. Editors validate the same document.
func jsonOf(text []byte) (any, error) {
	var value any
	for documents := yaml.NewDecoder(bytes.NewReader(text)); value == nil; {
		if err := documents.Decode(&value); err != nil {
			return nil, fmt.Errorf("YAML: %w", err)
		}
	}
	data, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("JSON: %w", err)
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(data))
}
