package deploy_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/deploy/deploytest"
)

// workflow holds the fields of a GitHub Actions workflow that the example uses. Any other field is an error, because it
// is probably misspelt.
// https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax
type workflow struct {
	Name        string            `yaml:"name"`
	On          map[string]any    `yaml:"on"`
	Permissions map[string]string `yaml:"permissions"`
	Concurrency struct {
		Group            string `yaml:"group"`
		CancelInProgress bool   `yaml:"cancel-in-progress"`
	} `yaml:"concurrency"`
	Jobs map[string]struct {
		RunsOn         string `yaml:"runs-on"`
		TimeoutMinutes int    `yaml:"timeout-minutes"`
		Steps          []step `yaml:"steps"`
	} `yaml:"jobs"`
}

type step struct {
	Name  string            `yaml:"name"`
	ID    string            `yaml:"id"`
	If    string            `yaml:"if"`
	Uses  string            `yaml:"uses"`
	With  map[string]string `yaml:"with"`
	Shell string            `yaml:"shell"`
	Run   string            `yaml:"run"`
	Env   map[string]string `yaml:"env"`
}

// action holds the fields of action.yml.
// https://docs.github.com/actions/reference/workflows-and-actions/metadata-syntax
type action struct {
	Name        string            `yaml:"name"`
	Description string            `yaml:"description"`
	Branding    map[string]string `yaml:"branding"`
	Inputs      map[string]struct {
		Description string  `yaml:"description"`
		Default     *string `yaml:"default"`
	} `yaml:"inputs"`
	Outputs map[string]struct {
		Description string `yaml:"description"`
		Value       string `yaml:"value"`
	} `yaml:"outputs"`
	Runs struct {
		Using string `yaml:"using"`
		Steps []step `yaml:"steps"`
	} `yaml:"runs"`
}

const gateFile = "deploy/github-actions/gate.yaml"

// read decodes a file of the repository into v. A field that v lacks is an error.
func read(t *testing.T, file string, v any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deploytest.Root(t), filepath.FromSlash(file)))
	if err != nil {
		t.Fatal(err)
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(v); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// The example runs for pull requests with read permission only, keeps the run's output also after a bad verdict, and
// uses only inputs that the action has.
func TestGateExample(t *testing.T) {
	var w workflow
	read(t, gateFile, &w)
	var a action
	read(t, "action.yml", &a)
	if len(w.Jobs) != 1 || w.Jobs["gate"].RunsOn == "" || w.Jobs["gate"].TimeoutMinutes == 0 {
		t.Fatalf("jobs: %+v", w.Jobs)
	}
	if _, ok := w.On["pull_request"]; !ok {
		t.Errorf("a pull request does not start it: %v", w.On)
	}
	if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
		t.Errorf("the workflow's token has the permissions %v; it needs only read", w.Permissions)
	}
	used, kept, written, published := false, false, false, false
	for _, s := range w.Jobs["gate"].Steps {
		written = written || strings.HasPrefix(s.Run, "loadgen publish ") && strings.HasPrefix(s.If, "always()")
		switch name, _, _ := strings.Cut(s.Uses, "@"); name {
		case "stormglass/stormglass":
			used = true
			for input := range s.With {
				if _, ok := a.Inputs[input]; !ok {
					t.Errorf("the action has no input %s", input)
				}
			}
		case "actions/upload-artifact":
			kept = kept || used && strings.HasPrefix(s.If, "always()") && s.With["path"] == "${{ steps.stormglass.outputs.run }}"
			published = published || written && strings.HasPrefix(s.If, "always()") && s.With["path"] == "stormglass-site"
		}
	}
	if !kept {
		t.Error("no step uploads the run directory after every verdict")
	}
	if !published {
		t.Error("no step uploads the static site after every verdict")
	}
}

// The scenario of the example is valid with its arguments.
func TestGateExampleScenario(t *testing.T) {
	var w workflow
	read(t, gateFile, &w)
	loadgen, checked := buildLoadgen(t), false
	for _, s := range w.Jobs["gate"].Steps {
		if s.With["scenario"] == "" {
			continue
		}
		checked = true
		args := append([]string{"validate", s.With["scenario"]}, strings.Fields(s.With["args"])...)
		if out, err := deploytest.Run(t, t.TempDir(), loadgen, args...); err != nil {
			t.Errorf("loadgen %v: %v\n%s", args, err, out)
		}
	}
	if !checked {
		t.Error("the example names no scenario")
	}
}

// Actions of others are pinned to a release. No input is inserted into a script, where it could run as code.
func TestActionsOfOthersAndInputs(t *testing.T) {
	var w workflow
	read(t, gateFile, &w)
	var a action
	read(t, "action.yml", &a)
	release := regexp.MustCompile(`^actions/[a-z-]+@v\d+\.\d+\.\d+$`)
	for _, s := range append(w.Jobs["gate"].Steps, a.Runs.Steps...) {
		if (s.Uses == "") == (s.Run == "") {
			t.Errorf("%s: a step uses an action or runs a command", s.Name)
		}
		if s.Uses != "" && !strings.HasPrefix(s.Uses, "stormglass/stormglass@") && !release.MatchString(s.Uses) {
			t.Errorf("%s: %s is not an action at a release", s.Name, s.Uses)
		}
		if strings.Contains(s.Run, "${{") {
			t.Errorf("%s: an expression is part of the script: %s", s.Name, s.Run)
		}
	}
	for name, in := range a.Inputs {
		if in.Description == "" || in.Default == nil {
			t.Errorf("input %s lacks a description or a default", name)
		}
	}
}

// actionlint accepts the workflow with this commit's action: types of expressions, inputs and outputs.
func TestActionlint(t *testing.T) {
	root, repository := deploytest.Root(t), t.TempDir()
	for _, dir := range []string{".git", ".github/workflows"} {
		if err := os.MkdirAll(filepath.Join(repository, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	lint := func(change func(string) string) (string, error) {
		text, err := os.ReadFile(filepath.Join(root, gateFile))
		if err != nil {
			t.Fatal(err)
		}
		metadata, err := os.ReadFile(filepath.Join(root, "action.yml"))
		if err != nil {
			t.Fatal(err)
		}
		here := strings.Replace(string(text), "stormglass/stormglass@main", "./", 1)
		for file, text := range map[string]string{".github/workflows/gate.yaml": change(here), "action.yml": string(metadata)} {
			if err := os.WriteFile(filepath.Join(repository, file), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		return deploytest.Run(t, repository, deploytest.Tool(t, deploytest.Actionlint), "-no-color", "-shellcheck=", "-pyflakes=")
	}
	ci, err := os.ReadFile(filepath.Join(root, ".github/workflows/ci.yml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(repository, ".github/workflows/ci.yml"), ci, 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := lint(func(text string) string { return text }); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for _, damage := range [][2]string{{"scenario:", "scenari:"}, {"outputs.run", "outputs.runs"}} {
		if out, err := lint(func(text string) string { return strings.Replace(text, damage[0], damage[1], 1) }); err == nil {
			t.Errorf("%s in the place of %s is accepted\n%s", damage[1], damage[0], out)
		}
	}
}

// Each loadgen command in docs/how-to exists and has the documented flags.
func TestDocumentedCommands(t *testing.T) {
	loadgen := buildLoadgen(t)
	for _, args := range deploytest.Documented(t, "loadgen") {
		exists(t, loadgen, args)
	}
}

// buildLoadgen builds loadgen and returns its path.
func buildLoadgen(t *testing.T) string {
	t.Helper()
	loadgen := filepath.Join(t.TempDir(), "loadgen")
	if out, err := deploytest.Run(t, deploytest.Root(t), "go", "build", "-o", loadgen, "./cmd/loadgen"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return loadgen
}

// exists fails the test if a program does not know a command or one of its flags. Unknown flags are errors even with
// --help, because flags are parsed first.
func exists(t *testing.T, program string, args []string) {
	t.Helper()
	out, err := deploytest.Run(t, t.TempDir(), program, append(args, "--help")...)
	if err != nil || !strings.Contains(out, filepath.Base(program)+" "+args[0]) {
		t.Errorf("%v: %v\n%s", args, err, out)
	}
}
