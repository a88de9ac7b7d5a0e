// Package imagearchive writes container images that have one layer and no base image. It uses the format of `docker
// save`, which `podman load` and `ctr images import` can read.
package imagearchive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Image describes an image for Linux on this machine's architecture.
type Image struct {
	// Name is the image's name with a tag, such as "example.invalid/worker:1".
	Name string
	// Entrypoint is the path of the program in the image, followed by its first arguments.
	Entrypoint []string
	// User is UID:GID; empty means root.
	User string
	// WorkingDir is the directory in which the program starts; empty means the root directory.
	WorkingDir string
	// Files lists the files of the image. A directory comes before the files that it contains.
	Files []File
}

// File is a file or a directory of an image.
type File struct {
	// Name is the path of the file in the image, without the leading slash. The name of a directory ends with a slash.
	Name string
	Mode int64
	// Owner is the ID of the user and the group that own the file.
	Owner int
	// Source is the path of a file on this machine with the content of File. If Source is empty, Data is the content.
	Source string
	Data   []byte
}

// Program returns an image that contains only a statically linked program (CGO_ENABLED=0) and runs it. The program is
// in the root directory of the image and keeps its file name.
func Program(image, program string) Image {
	name := filepath.Base(program)
	return Image{Name: image, Entrypoint: []string{"/" + name}, Files: []File{{Name: name, Mode: 0o755, Source: program}}}
}

// Write writes an image to the file `archive`.
func Write(archive string, image Image) error {
	layer := archive + ".layer"
	defer os.Remove(layer)
	digest, err := writeLayer(layer, image.Files)
	if err != nil {
		return err
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{"Entrypoint": image.Entrypoint, "User": image.User, "WorkingDir": image.WorkingDir},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + digest}},
	})
	if err != nil {
		return err
	}
	manifest, err := json.Marshal([]map[string]any{{"Config": "config.json", "RepoTags": []string{image.Name}, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return err
	}
	return writeTar(archive, io.Discard, []File{
		{Name: "manifest.json", Mode: 0o644, Data: manifest},
		{Name: "config.json", Mode: 0o644, Data: config},
		{Name: "layer.tar", Mode: 0o644, Source: layer},
	})
}

func writeLayer(layer string, files []File) (digest string, err error) {
	hash := sha256.New()
	if err := writeTar(layer, hash, files); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", hash.Sum(nil)), nil
}

// writeTar writes files to the tar file `name`. It writes the same bytes to `also`.
func writeTar(name string, also io.Writer, files []File) error {
	out, err := os.Create(name)
	if err != nil {
		return err
	}
	defer out.Close()
	w := tar.NewWriter(io.MultiWriter(out, also))
	for _, f := range files {
		if err := f.write(w); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return out.Close()
}

func (f File) write(w *tar.Writer) error {
	header := tar.Header{Name: f.Name, Mode: f.Mode, Uid: f.Owner, Gid: f.Owner, Size: int64(len(f.Data)), Typeflag: tar.TypeReg}
	var data io.Reader = bytes.NewReader(f.Data)
	if strings.HasSuffix(f.Name, "/") {
		header.Typeflag = tar.TypeDir
	}
	if f.Source != "" {
		in, err := os.Open(f.Source)
		if err != nil {
			return err
		}
		defer in.Close()
		info, err := in.Stat()
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is not a regular file", f.Source)
		}
		header.Size, data = info.Size(), in
	}
	if err := w.WriteHeader(&header); err != nil {
		return err
	}
	_, err := io.Copy(w, data)
	return err
}
