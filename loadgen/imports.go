package loadgen

import "github.com/stormglass/stormglass/loadgen/internal/importer"

// ImportOptions are the options of an import from another tool.
type ImportOptions = importer.Options

// Imported is the scenario that was created from another tool's configuration, with remarks on the parts that could not
// be imported.
type Imported = importer.Result

// ImportedFile is a template next to an imported scenario.
type ImportedFile = importer.File

// ImportKubeBurner imports a configuration of kube-burner: a file, or a directory that contains one.
func ImportKubeBurner(path string, o ImportOptions) (*Imported, error) {
	return importer.KubeBurner(path, o)
}

// ImportClusterLoader2 imports a test of ClusterLoader2.
func ImportClusterLoader2(file string, o ImportOptions) (*Imported, error) {
	return importer.ClusterLoader2(file, o)
}

// ImportKwok imports KWOK Stages from files or directories.
func ImportKwok(paths []string, o ImportOptions) (*Imported, error) { return importer.Kwok(paths, o) }

// ImportValues parses NAME=VALUE pairs. If typed is true, it converts numbers and booleans.
func ImportValues(pairs []string, typed bool) (map[string]any, error) {
	return importer.ParseValues(pairs, typed)
}

// ReadImportValues parses the content of a YAML or JSON file of values.
func ReadImportValues(file string, data []byte) (map[string]any, error) {
	return importer.ReadOverrides(file, data)
}
