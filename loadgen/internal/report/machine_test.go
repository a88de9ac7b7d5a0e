package report

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// A busy machine is shown before the verdict, at the top of the page, and in a pull request's summary; a quiet machine nowhere.
// The value of a gate that is not judged because of it is in parentheses.
func TestBusyMachineIsToldFirst(t *testing.T) {
	r := stormRun()
	r.Gates[0].Verdict, r.Gates[0].Value, r.Gates[0].Withheld, r.Gates[0].Unit = result.NoData, nil, ptr(0.384), "seconds"
	r.Measurements.Phases[2].Machine = &result.Machine{Busy: "other programs used 1.0 of 2 processors"}
	const want = "The machine was busy, so latencies may be too high: other programs used 1.0 of 2 processors in phase storm. Stop these programs, or use an idle machine."
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
	r.Measurements.Phases[2].Machine = nil
	if text := summary(t, r, TerminalOptions{}) + render(t, r, nil); strings.Contains(text, "machine was busy") {
		t.Error("the page says that a quiet machine was busy")
	}
}

// The phases that gave the values of gates come first, then those in which most processors were in use. The line does
// not ask to stop a hypervisor.
func TestBusyMachineIsOneLine(t *testing.T) {
	busy := func(name, why string, used float64) result.Phase {
		return result.Phase{Name: name, Start: at(0), End: at(10), Machine: &result.Machine{Busy: why, BusySeconds: 10 * used}}
	}
	programs := func(n string) string { return "other programs used " + n + " of 2 processors" }
	for want, r := range map[string]result.Result{
		"so latencies may be too high: other programs used 0.9 of 2 processors in phase b, 1.5 of 2 in d, 1.4 of 2 in a, 0.6 of 2 in c, 1 more phase. Stop these": {
			Gates: []result.Gate{{Unit: "seconds", WorstPhase: "b"}, {Unit: "count", WorstPhase: "e"}},
			Measurements: result.Measurements{Phases: []result.Phase{
				busy("a", programs("1.4"), 1.7), busy("b", programs("0.9"), 2), busy("c", programs("0.6"), 1.6), busy("d", programs("1.5"), 1.8), busy("e", "x", 1), {Name: "quiet"},
			}},
		},
		"so latencies may be too high: other programs used 0.9 of 2 processors in phase b, 0.2 of 2, and none was idle in a. Stop these": {
			Measurements: result.Measurements{Phases: []result.Phase{busy("a", programs("0.2")+", and none was idle", 1.9), busy("b", programs("0.9"), 2)}},
		},
		"so latencies may be too high: the hypervisor took 9% of the processors' time in phase a, x in phase b. Use an idle": {
			Measurements: result.Measurements{Phases: []result.Phase{busy("a", "the hypervisor took 9% of the processors' time", 2), busy("b", "x", 1)}},
		},
	} {
		if line := busyMachine(r); !strings.Contains(line, want) {
			t.Errorf("got %q, want %q", line, want)
		}
	}
}

// Near the verdict, the page says whether the load generator kept up. If there is a symptom but no diagnosis, it names
// the command that makes one.
func TestPageTellsTheGeneratorsState(t *testing.T) {
	const kept, diagnose = "The load generator kept up (not saturated): in the whole run, the p99 of its timer delay was 61 ms (limit 100 ms), and the maximum 193 ms.", "<code>loadgen diagnose DIR</code>"
	r := stormRun() // its fsyncs are slower than the guideline
	r.Measurements.Generator.SchedulingLag = result.Latency{Count: 100, P99: .061, Max: .193}
	page := render(t, r, nil)
	for _, want := range []string{kept, diagnose} {
		if at := strings.Index(page, want); at < 0 || at > strings.Index(page, `id="h-gates"`) {
			t.Errorf("%q is not above the gates", want)
		}
	}
	r.Measurements.Generator.Saturated, r.Diagnosis = []string{"x"}, &result.Diagnosis{Answer: result.Healthy}
	if page := render(t, r, nil); strings.Contains(page, kept) || strings.Contains(page, diagnose) {
		t.Error("a saturated generator kept up, or a diagnosed run asks for a diagnosis")
	}
	r.Measurements.Generator, r.Diagnosis, r.Key = result.Generator{}, nil, nil
	if page := render(t, r, nil); strings.Contains(page, "The load generator kept") || strings.Contains(page, diagnose) {
		t.Error("the page tells a state that was not recorded")
	}
}

// If the run itself used all processors, the report says so, because the latencies then include waits for a CPU. This is
// not a reason against the verdict.
func TestFullMachineIsAFact(t *testing.T) {
	r := stormRun()
	for i, used := range []float64{1.2, 1.97, 1.8} {
		p := &r.Measurements.Phases[i]
		p.Machine = &result.Machine{Processors: 2, BusySeconds: used * p.Seconds(), OwnSeconds: used * p.Seconds()}
	}
	names := []string{r.Measurements.Phases[1].Name, r.Measurements.Phases[2].Name}
	want := fmt.Sprintf("No processor of this machine was idle in %s (2.0 of 2 in use) and %s (1.8 of 2 in use): latencies include waits for a CPU.", names[0], names[1])
	var pull bytes.Buffer
	if err := Summary(&pull, r); err != nil {
		t.Fatal(err)
	}
	for where, text := range map[string]string{"terminal": strings.Join(strings.Fields(summary(t, r, TerminalOptions{})), " "), "page": render(t, r, nil), "pull request": pull.String()} {
		if !strings.Contains(text, want) || strings.Contains(text, "machine was busy") {
			t.Errorf("the %s does not contain %q", where, want)
		}
	}
}
