package report

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/bools"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
)

// The elements of the common JUnit schema, in the order that the schema requires.
type (
	junitSuites struct {
		XMLName  xml.Name   `xml:"testsuites"`
		Name     string     `xml:"name,attr"`
		Tests    int        `xml:"tests,attr"`
		Failures int        `xml:"failures,attr"`
		Errors   int        `xml:"errors,attr"`
		Time     string     `xml:"time,attr"`
		Suite    junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name       string          `xml:"name,attr"`
		Tests      int             `xml:"tests,attr"`
		Failures   int             `xml:"failures,attr"`
		Errors     int             `xml:"errors,attr"`
		Skipped    int             `xml:"skipped,attr"`
		Time       string          `xml:"time,attr"`
		Timestamp  string          `xml:"timestamp,attr"`
		Properties []junitProperty `xml:"properties>property"`
		Cases      []junitCase     `xml:"testcase"`
	}
	junitProperty struct {
		Name  string `xml:"name,attr"`
		Value string `xml:"value,attr"`
	}
	junitCase struct {
		Name      string        `xml:"name,attr"`
		Classname string        `xml:"classname,attr"`
		Time      string        `xml:"time,attr"`
		Skipped   *junitSkipped `xml:"skipped"`
		Error     *junitProblem `xml:"error"`
		Failure   *junitProblem `xml:"failure"`
		Output    string        `xml:"system-out,omitempty"`
	}
	junitSkipped struct {
		Message string `xml:"message,attr"`
	}
	junitProblem struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// JUnit writes junit.xml: a test case for the run itself and one for each gate. A failed gate is a <failure>. A gate
// without data is an <error>, because CI systems count <skipped> as success. A gate is <skipped> only if its missing
// data is allowed. All test cases succeed if and only if the verdict is pass.
func JUnit(w io.Writer, r result.Result) error {
	s := junitSuite{
		Name: terminal.Clean(r.Run.Scenario), Time: junitTime(runSeconds(r)),
		Timestamp:  r.Run.Started.UTC().Format("2006-01-02T15:04:05"),
		Properties: junitProperties(r),
	}
	lengths := map[string]float64{}
	for _, p := range r.Measurements.Phases {
		lengths[p.Name] = p.Seconds()
	}
	red := false
	for _, g := range r.Gates {
		c := junitGate(g, lengths)
		c.Classname = s.Name + ".gates"
		red = red || c.Error != nil || c.Failure != nil
		s.Cases = append(s.Cases, c)
	}
	s.Cases = append([]junitCase{junitRun(r, red)}, s.Cases...)
	return writeJUnit(w, s)
}

// writeJUnit counts the cases of a suite and writes the suite.
func writeJUnit(w io.Writer, s junitSuite) error {
	for _, c := range s.Cases {
		s.Tests++
		s.Failures += bools.Int(c.Failure != nil)
		s.Errors += bools.Int(c.Error != nil)
		s.Skipped += bools.Int(c.Skipped != nil)
	}
	root := junitSuites{Name: "stormglass", Tests: s.Tests, Failures: s.Failures, Errors: s.Errors, Time: s.Time, Suite: s}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	enc := xml.NewEncoder(w)
	enc.Indent("", "  ")
	if err := enc.Encode(root); err != nil {
		return fmt.Errorf("encode JUnit: %w", err)
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func junitTime(s float64) string { return fmt.Sprintf("%.3f", s) }

// junitGate returns the test case of a gate. Its time attribute is the total length of the phases that the gate covers.
func junitGate(g result.Gate, lengths map[string]float64) junitCase {
	over := 0.0
	for _, name := range g.Over {
		over += lengths[name]
	}
	c := junitCase{Name: terminal.Clean(g.Name), Time: junitTime(over)}
	said := fmt.Sprintf("%s: %s, bound: %s", terminal.Clean(g.Objective), gateValue(g), gateBound(g))
	if m := margin(g); m != "" {
		said += " (" + m + ")"
	}
	detail := []string{said, "phases: " + terminal.Clean(strings.Join(g.Over, ", "))}
	if g.Detail != "" {
		detail = append(detail, terminal.Clean(g.Detail))
	}
	if g.Expr != "" {
		detail = append(detail, "PromQL: "+terminal.Clean(g.Expr))
	}
	text := strings.Join(detail, "\n")
	switch g.Verdict {
	case result.Pass:
		c.Output = text
	case result.Fail:
		c.Failure = &junitProblem{Message: said, Type: "gate", Text: text}
	default:
		why := cmp.Or(terminal.Clean(g.Detail), "could not be judged")
		if g.Allowed {
			c.Skipped, c.Output = &junitSkipped{Message: "no data, which is allowed: " + why}, text
			break
		}
		c.Error = &junitProblem{Message: "no data: " + why, Type: "no data", Text: text}
	}
	return c
}

// junitRun returns the test case of the run itself. The case fails if the run has a problem that no gate shows, such as
// a failed environment, an unexpected exit or a reason without a gate. red means that the test case of at least one
// gate fails. If red is false although the verdict is not pass, the case of the run fails.
func junitRun(r result.Result, red bool) junitCase {
	c := junitCase{Name: "run", Classname: terminal.Clean(r.Run.Scenario), Time: junitTime(runSeconds(r))}
	kind, text := "", strings.Join(otherReasons(r), "\n")
	switch {
	case r.Run.Failure != "":
		kind = "environment"
		if failure := terminal.CleanLines(r.Run.Failure); !strings.Contains(text, failure) {
			text = strings.TrimSpace(failure + "\n" + text)
		}
	case r.Run.Interrupted:
		kind = "interrupted"
	case len(r.Run.LostWorkers) > 0:
		kind = "worker lost"
	case len(r.Measurements.Generator.Saturated) > 0:
		kind = "generator saturated"
	case len(r.Run.UnexpectedExits) > 0:
		kind = "unexpected exit"
	case text != "" && r.Verdict != result.Pass:
		kind = "could not judge"
	case r.Verdict != result.Pass && !red:
		kind, text = word(r.Verdict), "the verdict is "+word(r.Verdict)
	}
	if kind == "" {
		c.Output = headline(r)
		return c
	}
	text = cmp.Or(text, kind)
	first, _, _ := strings.Cut(text, "\n")
	problem := &junitProblem{Message: first, Type: kind, Text: text}
	if kind == "could not judge" && r.Verdict == result.Fail {
		// A failed run may have reasons that belong to no gate, such as a condition that was not met.
		problem.Type = "failed"
		c.Failure = problem
		return c
	}
	c.Error = problem
	return c
}

func junitProperties(r result.Result) []junitProperty {
	run := r.Run
	props := []junitProperty{
		{"run", run.ID}, {"verdict", string(r.Verdict)}, {"exitCode", fmt.Sprint(r.ExitCode)},
		{"seed", fmt.Sprint(run.Seed)},
		{"started", run.Started.UTC().Format(time.RFC3339)},
		{"stormglass", run.Versions.Stormglass}, {"kubernetes", run.Versions.Kubernetes},
		{"etcd", run.Versions.Etcd}, {"go", run.Versions.Go},
		{"host", fmt.Sprintf("%s, %d CPUs, %s", run.Host.OS, run.Host.CPUs, chart.Format("bytes", float64(run.Host.MemoryBytes)))},
	}
	for _, l := range labelTexts(run) {
		props = append(props, junitProperty{"label", l})
	}
	for _, o := range run.Overrides {
		props = append(props, junitProperty{"set", o})
	}
	for _, g := range run.WithoutGates {
		props = append(props, junitProperty{"withoutGate", g})
	}
	for _, d := range run.Cluster.Deviations {
		props = append(props, junitProperty{"deviation", fmt.Sprintf("%s %s=%s (default %s): %s", d.Component, d.Setting, d.Value, d.Default, d.Reason)})
	}
	for _, n := range r.Notes {
		props = append(props, junitProperty{"note", n})
	}
	for i := range props {
		props[i].Value = terminal.Clean(props[i].Value)
	}
	return props
}
