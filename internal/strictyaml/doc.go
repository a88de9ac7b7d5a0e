// Package strictyaml reads YAML into structs and refuses what it does not
// know. Each error names file, line and field, and carries a hint: the
// nearest field name, the form a value must have. The document stays at hand
// afterwards, so that validation can point at the line of any field.
//
// A path is the name of a field in --set: "nodes.count",
// "phases[0].for", or "gates.mutating-p99.max", where an item of a list of
// named things is addressed by its name.
package strictyaml
