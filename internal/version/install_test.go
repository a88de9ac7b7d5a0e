package version_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"

	"github.com/stormglass/stormglass/internal/version"
)

// compile is set by `make test-install`.
var compile = flag.Bool("compile", false, "compile what is installed and run it (minutes), where else its packages are loaded only")

const (
	modulePath = "github.com/stormglass/stormglass"
	root       = "../.."
	// The version of a commit, as `go install MODULE@COMMIT` determines it.
	commit    = "0123456789ab"
	candidate = "v0.0.0-20260102030405-" + commit
)

// `go install MODULE@VERSION` refuses a module whose go.mod contains replace or exclude directives.
func TestModuleNamesEachVersion(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	f, err := modfile.Parse("go.mod", text, nil)
	if err != nil {
		t.Fatal(err)
	}
	if f.Module.Mod.Path != modulePath {
		t.Errorf("module = %s", f.Module.Mod.Path)
	}
	for _, r := range f.Replace {
		t.Errorf("go.mod:%d: %s is replaced: require its version", r.Syntax.Start.Line, r.Old.Path)
	}
	for _, e := range f.Exclude {
		t.Errorf("go.mod:%d: %s is excluded", e.Syntax.Start.Line, e.Mod.Path)
	}
	for _, r := range f.Require {
		if r.Mod.Version == "v0.0.0" {
			t.Errorf("go.mod:%d: %s has no version: Kubernetes' own go.mod replaces it, this one has to name it", r.Syntax.Start.Line, r.Mod.Path)
		}
	}
}

// Tools read the dependencies of a module with `go list -m all`. The command needs a version of each module in the
// graph, even of modules that no build uses.
func TestModulesAreListed(t *testing.T) {
	cmd := exec.Command("go", "list", "-m", "all")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOWORK=off")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("go list -m all: %v\n%s", err, last(stderr.Bytes()))
	}
	for line := range strings.Lines(stdout.String()) {
		module, version, _ := strings.Cut(strings.TrimSpace(line), " ")
		if (version == "") != (module == modulePath) || version == "v0.0.0" {
			t.Errorf("%s has version %q", module, version)
		}
	}
}

// The working tree is installed by version, as if a module proxy served it. The module's archive contains every package
// that the programs need, and every dependency resolves without the tree's go.sum.
func TestInstall(t *testing.T) {
	bin := t.TempDir()
	args := []string{"install"}
	if *compile {
		args = append(args, "-trimpath") // third-party packages then come from the cache of other -trimpath builds
	} else {
		args = append(args, "-n")
	}
	programs := []string{"loadgen", "controlplane"}
	for _, p := range programs {
		args = append(args, modulePath+"/cmd/"+p+"@"+candidate)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = bin // in no module
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local", "GOSUMDB=off", "CGO_ENABLED=0", "GOBIN="+bin,
		"GOMODCACHE="+moduleCache(t), "GOPROXY=file://"+proxy(t)+","+goEnv(t, "GOPROXY"))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, last(out))
	}
	if !*compile {
		return
	}
	for _, p := range programs {
		out, err := exec.Command(filepath.Join(bin, p), "version", "-o", "json").Output()
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%s", out)
		var got version.Info
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatal(err)
		}
		if got.Version != candidate || got.Commit != commit || got.Date != "2026-01-02T03:04:05Z" || got.Dirty {
			t.Errorf("%s installed by version prints %s", p, out)
		}
	}
	kubectl, err := exec.Command(filepath.Join(bin, "controlplane"), "kubectl", "version", "--client").CombinedOutput()
	if err != nil || !strings.Contains(string(kubectl), "Client Version: v1.") {
		t.Errorf("kubectl version: %v\n%s", err, kubectl)
	}
}

// proxy creates a directory that serves the working tree as version `candidate` of the module, and returns it.
func proxy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	versions := filepath.Join(dir, filepath.FromSlash(modulePath), "@v")
	if err := os.MkdirAll(versions, 0o755); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	var archive bytes.Buffer
	if err := zip.Create(&archive, module.Version{Path: modulePath, Version: candidate}, tree(t)); err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"list":              []byte(candidate + "\n"),
		candidate + ".info": []byte(`{"Version":"` + candidate + `","Time":"2026-01-02T03:04:05Z"}`),
		candidate + ".mod":  mod,
		candidate + ".zip":  archive.Bytes(),
	} {
		if err := os.WriteFile(filepath.Join(versions, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// tree returns the files of the module's archive, which excludes nested modules.
func tree(t *testing.T) (files []zip.File) {
	t.Helper()
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	for name := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil { // skip files that are deleted but not committed
			files = append(files, treeFile(name))
		}
	}
	return files
}

// treeFile is the path of a file below root.
type treeFile string

func (f treeFile) Path() string                 { return string(f) }
func (f treeFile) Lstat() (os.FileInfo, error)  { return os.Lstat(filepath.Join(root, string(f))) }
func (f treeFile) Open() (io.ReadCloser, error) { return os.Open(filepath.Join(root, string(f))) }

// moduleCache creates a module cache with links to the other modules in the user's cache, so that the test leaves
// nothing in that cache.
func moduleCache(t *testing.T) string {
	t.Helper()
	cache, from := t.TempDir(), goEnv(t, "GOMODCACHE")
	owner, _ := filepath.Split(modulePath)
	// open holds the directories that contain this module, in both parts of a cache.
	open := map[string]bool{"cache": true, "cache/download": true}
	for _, part := range []string{"", "cache/download"} {
		for dir := filepath.Clean(owner); dir != "."; dir = filepath.Dir(dir) {
			open[filepath.Join(part, dir)] = true
		}
	}
	var link func(dir string)
	link = func(dir string) {
		entries, err := os.ReadDir(filepath.Join(from, dir))
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err == nil {
			err = os.MkdirAll(filepath.Join(cache, dir), 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			switch {
			case open[path]:
				link(path)
			case path == filepath.Join("cache/download", modulePath), strings.HasPrefix(path, filepath.FromSlash(modulePath)+"@"):
				// skip other versions of this module
			case path != filepath.Join("cache", "lock"):
				if err := os.Symlink(filepath.Join(from, path), filepath.Join(cache, path)); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	link("")
	t.Cleanup(func() { // the go command makes unpacked files read-only
		_ = filepath.WalkDir(filepath.Join(cache, owner), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				err = os.Chmod(path, 0o755)
			}
			return err
		})
	})
	return cache
}

func goEnv(t *testing.T, name string) string {
	t.Helper()
	out, err := exec.Command("go", "env", name).Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// last returns the last 4 KiB of out.
func last(out []byte) []byte { return out[max(0, len(out)-4096):] }
