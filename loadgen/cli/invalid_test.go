package cli

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/tools/txtar"

	"github.com/stormglass/stormglass/internal/goldenscript"
)

var update = flag.Bool("update", false, "rewrite the expected errors in testdata/invalid")

// TestInvalidScenarios holds, for each script in testdata/invalid, a scenario, the
// exact output of `validate` for it, and, where the hint can be followed word by word,
// a change that makes the scenario valid.
func TestInvalidScenarios(t *testing.T) {
	goldenscript.Each(t, "testdata/invalid/*.txtar", *update, func(t *testing.T, script *txtar.Archive) string {
		text := string(script.Files[0].Data)
		code, said := validate(t, text)
		if code != 2 {
			t.Errorf("exit code %d, want 2", code)
		}
		if len(script.Files) > 2 {
			for line := range strings.Lines(string(script.Files[2].Data)) {
				text = mend(t, text, line)
			}
			if code, said := validate(t, text); code != 0 {
				t.Errorf("after the hint was followed:\n%s", said)
			}
		}
		return said
	})
}

// TestAcceptedScenarios holds scenarios that a stricter check would refuse by mistake.
func TestAcceptedScenarios(t *testing.T) {
	ar, err := txtar.ParseFile("testdata/valid/accepted.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range ar.Files {
		if code, said := validate(t, string(f.Data)); code != 0 {
			t.Errorf("%s: exit code %d\n%s", f.Name, code, said)
		}
	}
}

func TestValidateReadsStandardInput(t *testing.T) {
	text := "apiVersion: stormglass/v1alpha1\nkind: Scenario\nname: piped\nphases: [{name: a, for: 30}]\n"
	var stdout, stderr bytes.Buffer
	code := execute(t.Context(), []string{"validate", "-"}, strings.NewReader(text), &stdout, &stderr)
	if want := "loadgen: stdin:4: phases.a.for: \"30\" has no unit (write 30s, 30ms or 30m)\n"; code != 2 || stderr.String() != want {
		t.Errorf("exit code %d, %q, want %q", code, stderr.String(), want)
	}
}

// A device or a pipe is refused at once, wherever a file is named.
func TestOnlyRegularFilesAreRead(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{pipe, os.DevNull, t.TempDir()} {
		for _, args := range [][]string{{"validate", file}, {"run", file}, {"run", "rollout-demo", "--kubeconfig", file}, {"cleanup", "--kubeconfig", file}} {
			var stdout, stderr bytes.Buffer
			code := execute(t.Context(), args, strings.NewReader(""), &stdout, &stderr)
			if code == 0 || strings.Count(stderr.String(), "\n") != 1 || !strings.Contains(stderr.String(), file+": ") || !strings.Contains(stderr.String(), " file") {
				t.Errorf("%v: exit code %d, %s", args, code, stderr.String())
			}
		}
	}
}

// mend applies one change, written as: "old" => "new".
func mend(t *testing.T, text, change string) string {
	t.Helper()
	before, after, _ := strings.Cut(strings.TrimSpace(change), " => ")
	before, err1 := strconv.Unquote(before)
	after, err2 := strconv.Unquote(after)
	if err1 != nil || err2 != nil || !strings.Contains(text, before) {
		t.Fatalf("%s: not a change of the scenario (%v, %v)", change, err1, err2)
	}
	return strings.ReplaceAll(text, before, after)
}

// validate runs the command on a scenario. It returns the exit code and the errors, without the program's name and the
// directory.
func validate(t *testing.T, text string) (code int, said string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "mine.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var stdout, stderr bytes.Buffer
	code = execute(t.Context(), []string{"validate", file}, strings.NewReader(""), &stdout, &stderr)
	for line := range strings.Lines(stderr.String()) {
		if !strings.HasPrefix(line, "loadgen: warning: ") {
			said += strings.ReplaceAll(strings.TrimPrefix(line, "loadgen: "), dir+string(filepath.Separator), "")
		}
	}
	return code, said
}
