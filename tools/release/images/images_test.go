package main

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// programs makes a directory with both programs for two platforms.
func programs(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, platform := range []string{"linux_amd64", "linux_arm64"} {
		for _, name := range []string{"loadgen", "controlplane"} {
			if err := os.MkdirAll(filepath.Join(dir, platform), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(dir, platform, name), []byte(name+" of "+platform), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// made runs the command, which must succeed, and returns the directory of the archives and the command's output.
func made(t *testing.T, args ...string) (dir, said string) {
	t.Helper()
	dir = t.TempDir()
	var stdout, stderr bytes.Buffer
	if code := run(append([]string{"-out", dir}, args...), &stdout, &stderr); code != 0 {
		t.Fatalf("exit %d: %s", code, &stderr)
	}
	return dir, stdout.String()
}

// unpacked returns the index of an archive.
func unpacked(t *testing.T, file string) v1.ImageIndex {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for r := tar.NewReader(f); ; {
		h, err := r.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(dir, h.Name)
		data, err := io.ReadAll(r)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o755)
		}
		if err == nil {
			err = os.WriteFile(to, data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	index, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func TestImages(t *testing.T) {
	dir, said := made(t, "-programs", programs(t), "-version", "v1.2.3", "-created", "2026-11-25T23:36:00Z")
	for image, entrypoint := range map[string]string{"loadgen": "/loadgen", "controlplane": "/controlplane"} {
		outer, err := unpacked(t, filepath.Join(dir, image+".tar")).IndexManifest()
		if err != nil || len(outer.Manifests) != 1 {
			t.Fatalf("%s: %+v %v", image, outer, err)
		}
		tag := "localhost/stormglass/" + image + ":v1.2.3"
		if got := outer.Manifests[0].Annotations["org.opencontainers.image.ref.name"]; got != tag || !strings.Contains(said, tag+"@"+outer.Manifests[0].Digest.String()) {
			t.Errorf("%s is called %s\n%s", image, got, said)
		}
		index, err := unpacked(t, filepath.Join(dir, image+".tar")).ImageIndex(outer.Manifests[0].Digest)
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(index); err != nil {
			t.Error(err)
		}
		manifest, err := index.IndexManifest()
		if err != nil {
			t.Fatal(err)
		}
		var platforms []string
		for _, m := range manifest.Manifests {
			platforms = append(platforms, m.Platform.String())
			img, err := index.Image(m.Digest)
			if err != nil {
				t.Fatal(err)
			}
			config, err := img.ConfigFile()
			if err != nil {
				t.Fatal(err)
			}
			if c := config.Config; c.User != "65532:65532" || len(c.Entrypoint) != 1 || c.Entrypoint[0] != entrypoint || config.Platform().String() != m.Platform.String() {
				t.Errorf("%s: %+v", image, config)
			}
			files := contents(t, img)
			for _, name := range programsOf(image) {
				want := fmt.Sprintf("-rwxr-xr-x 0 %s of %s_%s", name, m.Platform.OS, m.Platform.Architecture)
				if files[name] != want {
					t.Errorf("%s: %q, want %q", name, files[name], want)
				}
			}
			if _, ok := files["controlplane"]; ok && image == "loadgen" {
				t.Error("the image loadgen has the program controlplane")
			}
			if !strings.HasPrefix(files["tmp"], "dtrwxrwxrwx 0") || !strings.HasPrefix(files["home/stormglass"], "drwx------ 65532") {
				t.Errorf("directories: %v %v", files["tmp"], files["home/stormglass"])
			}
			_, certificates, _ := strings.Cut(files["etc/ssl/certs/ca-certificates.crt"], " 0 ")
			if pool := x509.NewCertPool(); !pool.AppendCertsFromPEM([]byte(certificates)) || strings.Count(certificates, "BEGIN") < 50 {
				t.Errorf("%d authorities", strings.Count(certificates, "BEGIN"))
			}
		}
		if strings.Join(platforms, " ") != "linux/amd64 linux/arm64" {
			t.Errorf("%s: platforms %v", image, platforms)
		}
	}
}

// contents returns the mode, the owner and the content of each file of an image, by name.
func contents(t *testing.T, img v1.Image) map[string]string {
	t.Helper()
	files := map[string]string{}
	flat := mutate.Extract(img)
	defer flat.Close()
	for r := tar.NewReader(flat); ; {
		h, err := r.Next()
		if err == io.EOF {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[h.Name] = fmt.Sprintf("%v %d %s", h.FileInfo().Mode(), h.Uid, data)
	}
}

// The same programs give the same archive, byte by byte.
func TestImagesAreReproducible(t *testing.T) {
	from := programs(t)
	a, _ := made(t, "-programs", from)
	b, _ := made(t, "-programs", from)
	for _, image := range imageNames() {
		one, err := os.ReadFile(filepath.Join(a, image+".tar"))
		if err != nil {
			t.Fatal(err)
		}
		other, err := os.ReadFile(filepath.Join(b, image+".tar"))
		if err != nil || !bytes.Equal(one, other) {
			t.Errorf("%s: two archives differ (%v)", image, err)
		}
	}
}

// If an image cannot be written, the command prints one line and leaves no archive.
func TestImagesRefuse(t *testing.T) {
	whole := programs(t)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-programs", whole}, 2, "images: -programs and -out are required"},
		{[]string{"-programs", whole, "-out", "OUT", "-created", "today"}, 2, `images: -created "today" is not a time`},
		{[]string{"-programs", whole, "-out", "OUT", "-platforms", "darwin/arm64"}, 2, `"darwin/arm64" is not a platform of the images`},
		{[]string{"-programs", whole, "-out", "OUT", "-platforms", "linux/riscv64"}, 1, "images: loadgen: open "},
		{[]string{"-programs", whole, "-out", "OUT", "grafana"}, 1, "images: grafana: unknown image (loadgen, controlplane)"},
	} {
		out := t.TempDir()
		for i, a := range c.args {
			if a == "OUT" {
				c.args[i] = out
			}
		}
		var stdout, stderr bytes.Buffer
		code := run(c.args, &stdout, &stderr)
		left, err := os.ReadDir(out)
		if code != c.code || !strings.Contains(stderr.String(), c.want) || strings.Count(stderr.String(), "\n") != 1 || err != nil || len(left) > 0 {
			t.Errorf("%v: exit %d, %q, left %v", c.args, code, &stderr, left)
		}
	}
}
