package scenario

import _ "embed"

//go:embed schema.json
var schemaFile []byte

// Schema returns the JSON Schema (draft 2020-12) of a scenario file. The schema was generated from the fields of
// Scenario, their comments and the rules of validation.
func Schema() []byte { return schemaFile }
