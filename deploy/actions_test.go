package deploy_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/stormglass/stormglass/deploy/deploytest"
)

// workflow holds the fields of a GitHub Actions workflow that the example uses:
// any other field is taken for misspelt.
// https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax
type workflow struct {
	Name        string            `yaml:"name"`
	On          map[string]any    `yaml:"on"`
	Permissions map[string]string `yaml:"permissions"`
	Concurrency struct {
		Group            string `yaml:"group"`
		CancelInProgress bool   `yaml:"cancel-in-progress"`
	} `yaml:"concurrency"`
	Env  map[string]string `yaml:"env"`
	Jobs map[string]struct {
		RunsOn         string `yaml:"runs-on"`
		TimeoutMinutes int    `yaml:"timeout-minutes"`
		Steps          []step `yaml:"steps"`
	} `yaml:"jobs"`
}

type step struct {
	Name string            `yaml:"name"`
	ID   string            `yaml:"id"`
	If   string            `yaml:"if"`
	Uses string            `yaml:"uses"`
	With map[string]string `yaml:"with"`
	Run  string            `yaml:"run"`
}

// gateExample is the one job of the example, and its environment.
func gateExample(t *testing.T) (steps []step, env map[string]string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(deploytest.Root(t), "deploy", "github-actions", "gate.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var w workflow
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	decoder.KnownFields(true)
	if err := decoder.Decode(&w); err != nil {
		t.Fatal(err)
	}
	if len(w.Jobs) != 1 || w.Jobs["gate"].RunsOn == "" || w.Jobs["gate"].TimeoutMinutes == 0 {
		t.Fatalf("jobs: %+v", w.Jobs)
	}
	if _, ok := w.On["pull_request"]; !ok {
		t.Errorf("a pull request does not start it: %v", w.On)
	}
	if len(w.Permissions) != 1 || w.Permissions["contents"] != "read" {
		t.Errorf("its token may %v; reading is enough", w.Permissions)
	}
	return w.Jobs["gate"].Steps, w.Env
}

// Actions of others are pinned to a version, and the run's output is kept also
// after a bad verdict.
func TestGateExampleActions(t *testing.T) {
	steps, env := gateExample(t)
	release := regexp.MustCompile(`^actions/[a-z-]+@v\d+\.\d+\.\d+$`)
	kept := false
	for _, s := range steps {
		if (s.Uses == "") == (s.Run == "") {
			t.Errorf("%s: a step uses an action or runs a command", s.Name)
		}
		if s.Uses != "" && !release.MatchString(s.Uses) {
			t.Errorf("%s: %s is not an action at a release", s.Name, s.Uses)
		}
		if strings.HasPrefix(s.Uses, "actions/upload-artifact@") {
			kept = strings.HasPrefix(s.If, "always()") && slices.Contains(words(t, script(steps, "run"), env), strings.TrimSuffix(s.With["path"], "/"))
		}
	}
	if !kept {
		t.Error("no step keeps the directory of the run, whatever its verdict")
	}
}

// Each command that the example runs, and each of loadgen's that docs/how-to
// tells of, is one that there is, with these arguments; what can be run without
// a control plane is run.
func TestCommands(t *testing.T) {
	steps, env := gateExample(t)
	root := deploytest.Root(t)
	loadgen := filepath.Join(t.TempDir(), "loadgen")
	if out, err := deploytest.Run(t, root, "go", "build", "-o", loadgen, "./cmd/loadgen"); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, s := range steps {
		for line := range strings.Lines(s.Run) {
			args := words(t, line, env)
			switch program := args[0]; {
			case program == "make":
				// -n only says what would be done: the target is there.
				if !slices.Equal(args[1:3], []string{"-C", "stormglass"}) {
					t.Errorf("%s: %s does not run in Stormglass' checkout", s.Name, line)
				}
				if out, err := deploytest.Run(t, root, "make", append([]string{"-n"}, args[3:]...)...); err != nil {
					t.Errorf("%s: %v\n%s", line, err, out)
				}
			case program == "stormglass/bin/loadgen" && args[1] == "validate":
				if out, err := deploytest.Run(t, t.TempDir(), loadgen, args[1:]...); err != nil {
					t.Errorf("%s: %v\n%s", line, err, out)
				}
			case program == "stormglass/bin/loadgen":
				exists(t, loadgen, args[1:])
			default:
				t.Errorf("%s: what %s does is not checked", s.Name, program)
			}
		}
	}
	for _, args := range deploytest.Documented(t, "loadgen") {
		exists(t, loadgen, args)
	}
}

// exists fails where a program does not know a command or one of its flags.
// Flags are read before --help is obeyed: one that is unknown is an error.
func exists(t *testing.T, program string, args []string) {
	t.Helper()
	out, err := deploytest.Run(t, t.TempDir(), program, append(args, "--help")...)
	if err != nil || !strings.Contains(out, filepath.Base(program)+" "+args[0]) {
		t.Errorf("%v: %v\n%s", args, err, out)
	}
}

// script is the command of the step with this id.
func script(steps []step, id string) string {
	for _, s := range steps {
		if s.ID == id {
			return s.Run
		}
	}
	return ""
}

// words is a command as the shell splits it: the example has no blanks within
// quotes, and no other shell syntax.
func words(t *testing.T, line string, env map[string]string) []string {
	t.Helper()
	if strings.ContainsAny(line, "|&;<>()`\\'*?") {
		t.Fatalf("%q: this test does not read so much of the shell", line)
	}
	expanded := os.Expand(strings.ReplaceAll(line, `"`, ""), func(name string) string {
		if value, ok := env[name]; ok {
			return value
		}
		if name == "GITHUB_STEP_SUMMARY" { // the runner's
			return "summary.md"
		}
		t.Errorf("%q: %s is not set", line, name)
		return fmt.Sprintf("<%s>", name)
	})
	return strings.Fields(expanded)
}
