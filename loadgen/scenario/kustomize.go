package scenario

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/userfile"
)

// kustomizations lists the file names that identify a directory as a kustomization.
var kustomizations = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// manifestText is the text of one or several manifests. Errors use name.
type manifestText struct{ name, text string }

// kustomize builds a kustomization with kubectl. It uses the kubectl of a controlplane program next to this program or
// on PATH, otherwise a kubectl on PATH. Linking kustomize into loadgen would make loadgen a third larger.
func kustomize(dir string) (string, error) {
	if err := regularBelow(dir); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), kustomizeWithin)
	defer cancel()
	build := exec.CommandContext(ctx, "kubectl", "kustomize", dir)
	if self, err := os.Executable(); err == nil {
		if found, err := commandline.Find(self, "controlplane"); err == nil { // controlplane acts as kubectl under that name
			build.Path, build.Err = found, nil
		}
	}
	text, err := build.Output()
	var failed *exec.ExitError
	if ctx.Err() != nil {
		return "", fmt.Errorf("kubectl kustomize took longer than %v", kustomizeWithin)
	}
	if errors.As(err, &failed) {
		return "", fmt.Errorf("kubectl kustomize: %s", strings.TrimPrefix(strings.TrimSpace(string(failed.Stderr)), "error: "))
	}
	if err != nil {
		return "", fmt.Errorf("it is a kustomization, and neither controlplane nor kubectl was found to build it: %w", err)
	}
	return string(text), nil
}

// kustomizeWithin is the time limit for building a kustomization.
const kustomizeWithin = time.Minute

// regularBelow returns an error for the first file below a directory that is not a regular file, because reading a pipe
// may block forever.
func regularBelow(dir string) error {
	return filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return userfile.Cause(err)
		}
		info, err := os.Stat(path) // follows links
		if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file", path)
		}
		return nil // kustomize reports broken links
	})
}

// readManifests reads a file, the output of a kustomization, or the files of any other directory in the order of their
// names. A relative name is relative to dir.
func readManifests(dir, name string) ([]manifestText, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	for _, k := range kustomizations {
		if _, err := os.Stat(filepath.Join(name, k)); err == nil {
			text, err := kustomize(name)
			return []manifestText{{filepath.Join(name, k), text}}, err
		}
	}
	var all []manifestText
	err := filepath.WalkDir(name, func(path string, f fs.DirEntry, err error) error {
		if err != nil {
			return userfile.Cause(err)
		}
		if f.IsDir() || path != name && !slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)) {
			return nil
		}
		data, err := userfile.Read(path, userfile.Text)
		if err != nil {
			return err
		}
		all = append(all, manifestText{path, string(data)})
		return nil
	})
	if err == nil && len(all) == 0 {
		err = errors.New("the directory has no *.yaml, *.yml or *.json")
	}
	return all, err
}
