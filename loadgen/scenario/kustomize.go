package scenario

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/userfile"
)

var kustomizations = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

type manifestText struct{ name, text string }

// kustomize builds a kustomization with kubectl. It uses the kubectl of a controlplane program next to this program or
// on PATH, otherwise a kubectl on PATH. Linking kustomize into loadgen would make loadgen a third larger.
func kustomize(ctx context.Context, dir string) (string, error) {
	if err := regularBelow(dir, map[string]bool{}); err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, kustomizeWithin)
	defer cancel()
	build := exec.CommandContext(ctx, "kubectl", "kustomize", dir)
	build.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that Cancel ends its child processes too, such as git
	build.Cancel = func() error { return syscall.Kill(-build.Process.Pid, syscall.SIGKILL) }
	if self, err := os.Executable(); err == nil {
		if found, err := commandline.Find(self, "controlplane"); err == nil { // controlplane acts as kubectl under that name
			build.Path, build.Err = found, nil
		}
	}
	out, problems := &capped{limit: maxManifests}, &capped{limit: 4 << 10}
	build.Stdout, build.Stderr = out, problems
	err := build.Run()
	var failed *exec.ExitError
	if ctx.Err() != nil {
		return "", fmt.Errorf("kubectl kustomize took longer than %v", kustomizeWithin)
	}
	if errors.As(err, &failed) {
		return "", fmt.Errorf("kubectl kustomize: %s", strings.TrimPrefix(strings.TrimSpace(problems.text.String()), "error: "))
	}
	if err != nil {
		return "", fmt.Errorf("this is a kustomization, but neither controlplane nor kubectl was found to build it: %w", err)
	}
	if out.over {
		return "", errManifestsTooLarge
	}
	return out.text.String(), nil
}

// maxManifests is the maximum total size of the files in a directory, or of the output of a kustomization, in bytes.
const maxManifests = 64 << 20

var errManifestsTooLarge = fmt.Errorf("its manifests have more than %d MiB in total", maxManifests>>20)

// capped is a writer that keeps the first `limit` bytes written to it, and records whether more were written.
type capped struct {
	limit int
	text  bytes.Buffer
	over  bool
}

func (c *capped) Write(p []byte) (int, error) {
	keep := min(len(p), c.limit-c.text.Len())
	c.over = c.over || keep < len(p)
	c.text.Write(p[:keep])
	return len(p), nil
}

const kustomizeWithin = time.Minute

// regularBelow returns an error if a file below dir is larger than maxManifests or is not a regular file. Reading a
// pipe, for example, may block forever. It also checks the directories that the kustomization in dir names. checked
// holds the directories that were already checked.
func regularBelow(dir string, checked map[string]bool) error {
	dir, err := filepath.EvalSymlinks(dir) // WalkDir does not follow links
	if err != nil {
		return userfile.Cause(err)
	}
	if checked[dir] {
		return nil
	}
	checked[dir] = true
	err = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return userfile.Cause(err)
		}
		info, err := os.Stat(path) // follows links
		if err == nil && !info.IsDir() && !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file", path)
		}
		if err == nil && info.Mode().IsRegular() && info.Size() > maxManifests {
			return fmt.Errorf("%s is larger than %d MiB, the maximum for a file that kustomize may read", path, maxManifests>>20)
		}
		return nil // kustomize reports broken links
	})
	if err != nil {
		return err
	}
	for _, k := range kustomizations {
		var names struct{ Resources, Components, Bases []string }
		text, err := userfile.Read(filepath.Join(dir, k), userfile.Text)
		if err != nil || yaml.Unmarshal(text, &names) != nil {
			continue // kustomize reports errors
		}
		for _, name := range slices.Concat(names.Resources, names.Components, names.Bases) {
			base := filepath.Join(dir, name)
			if info, err := os.Stat(base); err != nil || !info.IsDir() {
				continue
			}
			if err := regularBelow(base, checked); err != nil {
				return err
			}
		}
	}
	return nil
}

// readManifests reads a file, the output of a kustomization, or the files of any other directory in the order of their
// names. A relative name is relative to dir.
func readManifests(ctx context.Context, dir, name string) ([]manifestText, error) {
	if !filepath.IsAbs(name) {
		name = filepath.Join(dir, name)
	}
	for _, k := range kustomizations {
		if _, err := os.Stat(filepath.Join(name, k)); err == nil {
			text, err := kustomize(ctx, name)
			return []manifestText{{filepath.Join(name, k), text}}, err
		}
	}
	var all []manifestText
	size := 0
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
		if size += len(data); size > maxManifests {
			return errManifestsTooLarge
		}
		all = append(all, manifestText{path, string(data)})
		return nil
	})
	if err == nil && len(all) == 0 {
		err = errors.New("the directory has no *.yaml, *.yml or *.json")
	}
	return all, err
}
