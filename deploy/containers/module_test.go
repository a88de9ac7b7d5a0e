package containers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/stormglass/stormglass/internal/imagearchive"
)

// nobody is the user ID in the images of Prometheus and Alertmanager.
const nobody = 65534

// Module is the Go module from which the program of an image is built.
type Module struct {
	Path, Version string
	// Program is the name of the program, and of its package below cmd. Release is the version that the program reports.
	Program, Release string
}

var (
	reference = regexp.MustCompile(`^(?:docker\.io/)?([a-z]+/[a-z]+):v?(\d+)\.(\d+)\.(\d+)$`)
	// pages maps a program to the directory of the web pages that the program embeds. The module does not contain the
	// directory, because other tools generate the pages.
	pages = map[string]string{"alertmanager": "ui/app/dist"}
)

// ModuleOf returns the module of an image prom/prometheus or prom/alertmanager. Release 3.15.0 of Prometheus is version
// v0.315.0 of the module.
func ModuleOf(image string) (Module, error) {
	m := reference.FindStringSubmatch(image)
	if m == nil {
		return Module{}, fmt.Errorf("image %q is not OWNER/NAME:vX.Y.Z", image)
	}
	release := strings.Join(m[2:], ".")
	switch m[1] {
	case "prom/prometheus":
		return Module{"github.com/prometheus/prometheus", fmt.Sprintf("v0.%s%02s.%s", m[2], m[3], m[4]), "prometheus", release}, nil
	case "prom/alertmanager":
		return Module{"github.com/prometheus/alertmanager", "v" + release, "alertmanager", release}, nil
	}
	return Module{}, fmt.Errorf("image %s: not built from a known Go module (only prom/prometheus, prom/alertmanager)", image)
}

// Build builds the static program of an image in dir and returns the image. The image has the content of the upstream
// image, but no shell and no web pages. tools is the directory of the module tools, whose go.sum verifies the source.
// The program is built with the dependencies in its own go.mod, as in upstream's releases. The first build takes
// minutes.
func Build(ctx context.Context, tools, dir, image string) (imagearchive.Image, error) {
	m, err := ModuleOf(image)
	if err != nil {
		return imagearchive.Image{}, err
	}
	source, err := m.copySource(ctx, tools, dir)
	if err != nil {
		return imagearchive.Image{}, fmt.Errorf("source of %s: %w", m.Program, err)
	}
	program := filepath.Join(dir, m.Program)
	build := exec.CommandContext(ctx, "go", "build", "-C", source, "-buildvcs=false", "-tags", "netgo,remove_all_sd",
		"-ldflags", "-s -w -X github.com/prometheus/common/version.Version="+m.Release, "-o", program, "./cmd/"+m.Program)
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		return imagearchive.Image{}, fmt.Errorf("build %s: %w\n%s", m.Program, err, out)
	}
	return m.image(image, program), nil
}

// copySource copies the source of the module to a directory below dir and returns that directory. The module cache
// cannot be used directly, because it is read-only and the build needs additional files.
func (m Module) copySource(ctx context.Context, tools, dir string) (string, error) {
	download := exec.CommandContext(ctx, "go", "-C", tools, "mod", "download", "-json", m.Path+"@"+m.Version)
	var stdout, stderr bytes.Buffer
	download.Stdout, download.Stderr = &stdout, &stderr
	if err := download.Run(); err != nil {
		return "", fmt.Errorf("%w\n%s%s", err, &stdout, &stderr)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(stdout.Bytes(), &module); err != nil {
		return "", err
	}
	source := filepath.Join(dir, "source", m.Program)
	if err := os.RemoveAll(source); err != nil {
		return "", err
	}
	if err := os.CopyFS(source, os.DirFS(module.Dir)); err != nil {
		return "", err
	}
	lacks := pages[m.Program]
	if lacks == "" {
		return source, nil
	}
	if err := os.MkdirAll(filepath.Join(source, lacks), 0o755); err != nil {
		return "", err
	}
	return source, os.WriteFile(filepath.Join(source, lacks, "index.html"), []byte("built without its pages\n"), 0o644)
}

// image returns the image for a built program.
func (m Module) image(name, program string) imagearchive.Image {
	return imagearchive.Image{
		Name: name, Entrypoint: []string{"/bin/" + m.Program}, User: fmt.Sprintf("%d:%d", nobody, nobody), WorkingDir: "/" + m.Program,
		Files: []imagearchive.File{
			{Name: "bin/", Mode: 0o755},
			{Name: "bin/" + m.Program, Mode: 0o755, Source: program},
			{Name: "etc/", Mode: 0o755},
			{Name: "etc/" + m.Program + "/", Mode: 0o755, Owner: nobody},
			{Name: "etc/group", Mode: 0o644, Data: fmt.Appendf(nil, "root:x:0:\nnobody:x:%d:\n", nobody)},
			{Name: "etc/passwd", Mode: 0o644, Data: fmt.Appendf(nil, "root:x:0:0:root:/root:/bin/sh\nnobody:x:%d:%d:nobody:/home:/bin/false\n", nobody, nobody)},
			{Name: m.Program + "/", Mode: 0o775, Owner: nobody},
			{Name: "tmp/", Mode: 0o1777},
		},
	}
}
