package report

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// A busy machine is shown before the verdict, at the top of the page, and in a pull request's summary; a quiet machine nowhere.
// The value of a gate that is not judged because of it is in parentheses.
func TestBusyMachineIsToldFirst(t *testing.T) {
	r := stormRun()
	r.Gates[0].Verdict, r.Gates[0].Value, r.Gates[0].Withheld, r.Gates[0].Unit = result.NoData, nil, ptr(0.384), "seconds"
	r.BusyMachine = []string{"other programs used 1.0 of 2 processors in phase under"}
	const want = "The machine was busy, so latencies may be too high: other programs used 1.0 of 2 processors in phase under. Stop these programs, or use an idle machine."
	text := summary(t, r, TerminalOptions{Width: 120})
	if joined := strings.ReplaceAll(text, "\n", " "); !strings.HasPrefix(joined, "warning: "+want) || !strings.Contains(text, "(384 ms)") {
		t.Errorf("it begins with %.200q", text)
	}
	page := render(t, r, nil)
	if at := strings.Index(page, want); at < 0 || at > strings.Index(page, `class="timeline"`) {
		t.Error("the top of the page does not say that the machine was busy")
	}
	var pull bytes.Buffer
	if err := Summary(&pull, r); err != nil || !strings.Contains(pull.String(), "other programs used 1.0 of 2 processors") {
		t.Errorf("%v, %q", err, pull.String())
	}
	r.BusyMachine = nil
	if text := summary(t, r, TerminalOptions{}) + render(t, r, nil); strings.Contains(text, "machine was busy") {
		t.Error("the page says that a quiet machine was busy")
	}
}

// Many phases are one line; the line does not ask to stop a hypervisor.
func TestBusyMachineIsOneLine(t *testing.T) {
	line := busyMachine(result.Result{BusyMachine: []string{"the hypervisor took 9% of the processors' time in phase a", "x in phase b", "y in phase c", "z in phase d"}})
	if !strings.Contains(line, "in phase a; x in phase b; 2 more phases were busy too. Use an idle") || strings.Contains(line, "Stop these") {
		t.Error(line)
	}
	const programs = "other programs used 1.7 of 2 processors in phase a"
	line = busyMachine(result.Result{BusyMachine: []string{programs, "other programs used 0.9 of 2 processors in phase b", "c"}})
	if !strings.Contains(line, programs+", 0.9 of 2 processors in phase b; 1 more phase was busy too. Stop these") {
		t.Error(line)
	}
}
