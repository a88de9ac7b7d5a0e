// Generate writes the manifests in deploy/kubernetes/rules, which are generated from the rule files. Run it in the root
// of the repository:
//
//	go run ./deploy/generate
//
// The directory holds only generated files; Generate removes all other *.yaml files from it.
package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/stormglass/stormglass/deploy"
)

func main() { os.Exit(run(".", os.Stderr)) }

// run writes the manifests of the repository at root, and returns the exit code: 0, or 1 for an error.
func run(root string, stderr io.Writer) int {
	if err := write(root); err != nil {
		fmt.Fprintln(stderr, "generate:", err)
		return 1
	}
	return 0
}

func write(root string) error {
	files, err := deploy.Manifests(os.DirFS(root))
	if err != nil {
		return err
	}
	base := filepath.Join(root, "deploy", "kubernetes")
	old, err := filepath.Glob(filepath.Join(base, deploy.RulesDir, "*.yaml"))
	if err != nil {
		return err
	}
	for _, file := range old {
		if files[deploy.RulesDir+"/"+filepath.Base(file)] != nil {
			continue
		}
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Join(base, deploy.RulesDir), 0o755); err != nil {
		return err
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(base, filepath.FromSlash(name)), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
