package realnode

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// sandboxImage is that of sandboxes, which wait until they are asked to end.
const sandboxImage = "stormglass.invalid/sandbox:1"

// BuildContainer builds the program of this package's own containers into dir, see container/main.go.
func BuildContainer(ctx context.Context, dir string) (program string, err error) {
	program = filepath.Join(dir, "container")
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, "github.com/stormglass/stormglass/loadgen/internal/realnode/container")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the containers' program: %w\n%s", err, out)
	}
	return program, nil
}

// writeImage writes the archive that `docker save` would of an image from scratch with one program, which
// `ctr images import` reads.
func writeImage(archive, program, name string) error {
	layer := archive + ".layer"
	defer os.Remove(layer)
	digest, err := writeLayer(layer, program)
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/" + filepath.Base(program)}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	out, err := os.Create(archive)
	if err != nil {
		return err
	}
	defer out.Close()
	w := tar.NewWriter(out)
	for _, f := range []struct {
		name string
		data []byte
	}{{"manifest.json", manifest}, {"config.json", config}} {
		if err := writeFile(w, f.name, 0o644, int64(len(f.data)), bytes.NewReader(f.data)); err != nil {
			return err
		}
	}
	if err := copyFile(w, "layer.tar", 0o644, layer); err != nil {
		return err
	}
	return w.Close()
}

// writeLayer writes a layer with a program at its root, and returns its SHA-256.
func writeLayer(layer, program string) (digest string, err error) {
	out, err := os.Create(layer)
	if err != nil {
		return "", err
	}
	defer out.Close()
	hash := sha256.New()
	w := tar.NewWriter(io.MultiWriter(out, hash))
	if err := copyFile(w, filepath.Base(program), 0o755, program); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", hash.Sum(nil)), nil
}

// copyFile adds a file of this machine to an archive.
func copyFile(w *tar.Writer, name string, mode int64, path string) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	info, err := in.Stat()
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no file", path)
	}
	return writeFile(w, name, mode, info.Size(), in)
}

func writeFile(w *tar.Writer, name string, mode, size int64, data io.Reader) error {
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: size}); err != nil {
		return err
	}
	_, err := io.Copy(w, data)
	return err
}
