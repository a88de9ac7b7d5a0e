// Package dist tests what `make snapshot` built: archives, checksums, lists of modules, and the manifest for krew.
package dist

import (
	"archive/tar"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

var dist = flag.String("dist", "../../../bin/dist", "directory that goreleaser wrote")

// artifact is one file of a release, as goreleaser lists it.
type artifact struct {
	Name, Path, Type string
	GOOS             string `json:"goos"`
	GOARCH           string `json:"goarch"`
	Extra            struct {
		ID       string
		Binaries []string
	}
}

func artifacts(t *testing.T) (all []artifact, version string) {
	t.Helper()
	var metadata struct{ Version string }
	for file, v := range map[string]any{"artifacts.json": &all, "metadata.json": &metadata} {
		text, err := os.ReadFile(filepath.Join(*dist, file))
		if err == nil {
			err = json.Unmarshal(text, v)
		}
		if err != nil {
			t.Fatalf("%v (make snapshot makes it)", err)
		}
	}
	return all, metadata.Version
}

func ofType(all []artifact, kind string) (some []artifact) {
	for _, a := range all {
		if a.Type == kind {
			some = append(some, a)
		}
	}
	return some
}

// Each archive contains its program, with mode 0755, and the license. The program for this platform prints the version.
func TestArchives(t *testing.T) {
	all, version := artifacts(t)
	archives := ofType(all, "Archive")
	if len(archives) == 0 {
		t.Fatal("no archive")
	}
	for _, a := range archives {
		program := a.Extra.ID
		if want := fmt.Sprintf("%s_%s_%s_%s.tar.gz", program, version, a.GOOS, a.GOARCH); a.Name != want {
			t.Errorf("%s: want %s", a.Name, want)
		}
		dir := t.TempDir()
		modes := unpack(t, filepath.Join(*dist, a.Name), dir)
		for _, file := range []string{program, "LICENSE", "README.md", "CHANGELOG.md"} {
			if _, ok := modes[file]; !ok {
				t.Errorf("%s lacks %s: %v", a.Name, file, modes)
			}
		}
		if modes[program] != 0o755 {
			t.Errorf("%s: %s has mode %v", a.Name, program, modes[program])
		}
		if a.GOOS != runtime.GOOS || a.GOARCH != runtime.GOARCH {
			continue
		}
		out, err := exec.Command(filepath.Join(dir, program), "version", "-o", "json").Output()
		var said struct{ Version, Commit, Date string }
		if err := errors.Join(err, json.Unmarshal(out, &said)); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s: %s", a.Name, out)
		if said.Version != "v"+version || len(said.Commit) != 40 || said.Date == "" {
			t.Errorf("%s says %s, want v%s", a.Name, out, version)
		}
	}
}

// unpack unpacks an archive, and returns the modes of its files.
func unpack(t *testing.T, file, dir string) map[string]os.FileMode {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]os.FileMode{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if err == io.EOF {
			return modes
		}
		if err != nil {
			t.Fatal(err)
		}
		modes[h.Name] = h.FileInfo().Mode().Perm()
		data, err := io.ReadAll(r)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, filepath.Base(h.Name)), data, modes[h.Name])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// checksums.txt contains the checksums of all archives and lists of modules, and nothing else.
func TestChecksums(t *testing.T) {
	all, _ := artifacts(t)
	text, err := os.ReadFile(filepath.Join(*dist, "checksums.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	for line := range strings.Lines(string(text)) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		data, err := os.ReadFile(filepath.Join(*dist, name))
		if err != nil || fmt.Sprintf("%x", sha256.Sum256(data)) != sum {
			t.Errorf("%s: %v", strings.TrimSpace(line), err)
		}
		named = append(named, name)
	}
	for _, a := range append(ofType(all, "Archive"), ofType(all, "SBOM")...) {
		if !slices.Contains(named, a.Name) {
			t.Errorf("checksums.txt lacks %s", a.Name)
		}
	}
	if want := len(ofType(all, "Archive")) + len(ofType(all, "SBOM")); len(named) != want {
		t.Errorf("checksums of %v, want %d", named, want)
	}
}

// Each program has a CycloneDX document with the modules from which the program is linked.
func TestModuleLists(t *testing.T) {
	all, _ := artifacts(t)
	documents := ofType(all, "SBOM")
	if len(documents) != len(ofType(all, "Archive")) {
		t.Errorf("%d documents of %d archives", len(documents), len(ofType(all, "Archive")))
	}
	for _, d := range documents {
		text, err := os.ReadFile(filepath.Join(*dist, d.Name))
		if err != nil {
			t.Fatal(err)
		}
		var bom struct {
			BOMFormat  string
			Components []struct {
				Name, Version, PURL string
			}
		}
		if err := json.Unmarshal(text, &bom); err != nil || bom.BOMFormat != "CycloneDX" {
			t.Fatalf("%s: %v, format %q", d.Name, err, bom.BOMFormat)
		}
		program, _, _ := strings.Cut(d.Name, "_")
		want := map[string][]string{"loadgen": {"k8s.io/client-go", "std"}, "controlplane": {"k8s.io/kubernetes", "go.etcd.io/etcd/server/v3", "std"}}[program]
		for _, module := range want {
			found := false
			for _, c := range bom.Components {
				found = found || c.Name == module && c.Version != "" && c.PURL != ""
			}
			if !found {
				t.Errorf("%s lacks %s among %d components", d.Name, module, len(bom.Components))
			}
		}
		t.Logf("%s: %d components", d.Name, len(bom.Components))
	}
}

// platform is one platform in the manifest for krew.
type platform struct {
	URI      string
	SHA256   string `yaml:"sha256"`
	Bin      string
	Selector struct {
		MatchLabels map[string]string `yaml:"matchLabels"`
	}
}

// The manifest meets krew's requirements: https://krew.sigs.k8s.io/docs/developer-guide/plugin-manifest
func TestKrewManifest(t *testing.T) {
	all, version := artifacts(t)
	text, err := os.ReadFile(filepath.Join(*dist, "krew", "stormglass.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var m struct {
		APIVersion string `yaml:"apiVersion"`
		Kind       string
		Metadata   struct{ Name string }
		Spec       struct {
			Version, Homepage, Description, Caveats string
			ShortDescription                        string `yaml:"shortDescription"`
			Platforms                               []platform
		}
	}
	if err := yaml.Unmarshal(text, &m); err != nil {
		t.Fatal(err)
	}
	if m.APIVersion != "krew.googlecontainertools.github.com/v1alpha2" || m.Kind != "Plugin" || m.Metadata.Name != "stormglass" {
		t.Errorf("%s %s %s", m.APIVersion, m.Kind, m.Metadata.Name)
	}
	if m.Spec.Version != "v"+version || !regexp.MustCompile(`^v\d+\.\d+\.\d+`).MatchString(m.Spec.Version) {
		t.Errorf("version %s of %s", m.Spec.Version, version)
	}
	if n := len(m.Spec.ShortDescription); n == 0 || n > 50 {
		t.Errorf("the short description has %d characters, want 1 to 50", n)
	}
	platforms := 0
	for _, a := range ofType(all, "Archive") {
		if a.Extra.ID != "loadgen" {
			continue
		}
		platforms++
		data, err := os.ReadFile(filepath.Join(*dist, a.Name))
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(m.Spec.Platforms, func(p platform) bool {
			return p.Selector.MatchLabels["os"] == a.GOOS && p.Selector.MatchLabels["arch"] == a.GOARCH
		})
		if i < 0 {
			t.Errorf("the manifest has no platform %s/%s", a.GOOS, a.GOARCH)
			continue
		}
		p := m.Spec.Platforms[i]
		if p.Bin != "loadgen" || p.SHA256 != fmt.Sprintf("%x", sha256.Sum256(data)) || !strings.HasSuffix(p.URI, "/"+a.Name) {
			t.Errorf("%s/%s: %+v", a.GOOS, a.GOARCH, p)
		}
	}
	if platforms == 0 || platforms != len(m.Spec.Platforms) {
		t.Errorf("%d platforms of %d archives", len(m.Spec.Platforms), platforms)
	}
}
