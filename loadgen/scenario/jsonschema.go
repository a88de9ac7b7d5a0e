package scenario

import _ "embed"

//go:embed schema.json
var schemaFile []byte

// Schema is the JSON Schema (draft 2020-12) of a scenario file, made from the fields of Scenario, their comments and
// what validation says of them.
func Schema() []byte { return schemaFile }
