package shell

import (
	"os/exec"
	"testing"
)

func TestQuotedTextSurvivesAShell(t *testing.T) {
	for _, word := range []string{
		"", "/tmp/plane", "/tmp/my plane", "it's", `"$HOME"`, "a;b", "`id`", "*", "~", "line\nbreak", "é", `back\slash`, "a=b", "!x", "#c", "'",
	} {
		out, err := exec.Command("sh", "-c", "printf %s "+Quote(word)).Output()
		if err != nil || string(out) != word {
			t.Errorf("%q was quoted as %s, and the shell read %q, %v", word, Quote(word), out, err)
		}
	}
	if got := Quote("/tmp/plane-1"); got != "/tmp/plane-1" {
		t.Errorf("a plain path is quoted: %s", got)
	}
}
