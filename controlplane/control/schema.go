package control

import _ "embed"

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of a config file, generated from the fields of Config and their
// comments.
func Schema() []byte { return schema }
