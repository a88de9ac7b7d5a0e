package control

import _ "embed"

//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of a Config's file, made from Config's fields and their comments.
func Schema() []byte { return schema }
