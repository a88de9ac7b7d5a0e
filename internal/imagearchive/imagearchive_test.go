package imagearchive

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// members returns the content of each file of an archive, by name.
func members(t *testing.T, r io.Reader) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for archive := tar.NewReader(r); ; {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			t.Fatal(err)
		}
		all[h.Name] = data
		if h.Name == "worker" && h.Mode != 0o755 {
			t.Errorf("mode of the program = %o", h.Mode)
		}
	}
}

func TestImageOfAProgram(t *testing.T) {
	dir := t.TempDir()
	program, archive := filepath.Join(dir, "worker"), filepath.Join(dir, "image.tar")
	if err := os.WriteFile(program, []byte("a program"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(archive, Program("example.invalid/worker:1", program)); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(archive)
	if err != nil {
		t.Fatal(err)
	}
	files := members(t, bytes.NewReader(data))
	var manifest []struct {
		Config           string
		RepoTags, Layers []string
	}
	if err := json.Unmarshal(files["manifest.json"], &manifest); err != nil {
		t.Fatal(err)
	}
	if len(manifest) != 1 || len(manifest[0].Layers) != 1 || fmt.Sprint(manifest[0].RepoTags) != "[example.invalid/worker:1]" {
		t.Fatalf("manifest %+v", manifest)
	}
	layer := files[manifest[0].Layers[0]]
	if got := members(t, bytes.NewReader(layer)); len(got) != 1 || string(got["worker"]) != "a program" {
		t.Errorf("the layer contains %v", got)
	}
	config := string(files[manifest[0].Config])
	if !strings.Contains(config, `"Entrypoint":["/worker"]`) || !strings.Contains(config, fmt.Sprintf("sha256:%x", sha256.Sum256(layer))) {
		t.Errorf("config %s", config)
	}
	if left, _ := filepath.Glob(archive + ".*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestImageOfNoProgram(t *testing.T) {
	dir := t.TempDir()
	for _, program := range []string{filepath.Join(dir, "absent"), dir} {
		if err := Write(filepath.Join(dir, "image.tar"), Program("example.invalid/worker:1", program)); err == nil {
			t.Errorf("%s is accepted as a program", program)
		}
	}
}

// The archive contains the directories, owners, user and working directory of the Image.
func TestImageOfFiles(t *testing.T) {
	file := filepath.Join(t.TempDir(), "image.tar")
	if err := Write(file, Image{
		Name: "example.invalid/server:1", Entrypoint: []string{"/bin/server"}, User: "65534:65534", WorkingDir: "/data",
		Files: []File{
			{Name: "data/", Mode: 0o755, Owner: 65534},
			{Name: "etc/passwd", Mode: 0o644, Data: []byte("root:x:0:0::/:\n")},
		},
	}); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	files := members(t, bytes.NewReader(data))
	for _, want := range []string{`"User":"65534:65534"`, `"WorkingDir":"/data"`} {
		if !strings.Contains(string(files["config.json"]), want) {
			t.Errorf("%s is missing in %s", want, files["config.json"])
		}
	}
	layer := tar.NewReader(bytes.NewReader(files["layer.tar"]))
	var got []string
	for {
		h, err := layer.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s %v %d:%d", h.Name, h.FileInfo().Mode(), h.Uid, h.Gid))
	}
	if want := "data/ drwxr-xr-x 65534:65534, etc/passwd -rw-r--r-- 0:0"; strings.Join(got, ", ") != want {
		t.Errorf("the layer holds %v, want %s", got, want)
	}
}
