package main

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// The images of the sandbox and of containers: one program each, from scratch.
const (
	sandboxImage   = "stormglass.invalid/sandbox:1"
	containerImage = "stormglass.invalid/container:1"
)

// writeImage builds the container program and writes the archive that `docker save` would,
// which `ctr images import` reads.
func writeImage(dir string) (file string, err error) {
	binary := filepath.Join(dir, "container")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", binary, "github.com/stormglass/stormglass/loadgen/calibrate/container")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the container's program: %w\n%s", err, out)
	}
	program, err := os.ReadFile(binary)
	if err != nil {
		return "", err
	}
	var layer bytes.Buffer
	if err := writeTar(&layer, tarFile{"container", 0o755, program}); err != nil {
		return "", err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": []string{"/container"}},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{fmt.Sprintf("sha256:%x", sha256.Sum256(layer.Bytes()))}},
	})
	if err != nil {
		return "", err
	}
	manifest, err := json.Marshal([]map[string]any{{
		"Config": "config.json", "RepoTags": []string{sandboxImage, containerImage}, "Layers": []string{"layer.tar"},
	}})
	if err != nil {
		return "", err
	}
	file = filepath.Join(dir, "image.tar")
	out, err := os.Create(file)
	if err != nil {
		return "", err
	}
	defer out.Close()
	return file, writeTar(out, tarFile{"manifest.json", 0o644, manifest}, tarFile{"config.json", 0o644, config}, tarFile{"layer.tar", 0o644, layer.Bytes()})
}

type tarFile struct {
	name string
	mode int64
	data []byte
}

func writeTar(to io.Writer, files ...tarFile) error {
	w := tar.NewWriter(to)
	for _, f := range files {
		if err := w.WriteHeader(&tar.Header{Name: f.name, Mode: f.mode, Size: int64(len(f.data))}); err != nil {
			return err
		}
		if _, err := w.Write(f.data); err != nil {
			return err
		}
	}
	return w.Close()
}
