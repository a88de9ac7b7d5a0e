package diagnosis

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/parser"

	"github.com/stormglass/stormglass/internal/metricnames"
	"github.com/stormglass/stormglass/internal/schemadoc"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/judge/alerting"
	"github.com/stormglass/stormglass/loadgen/internal/machine"
)

var update = flag.Bool("update", false, "rewrite docs/reference/diagnosis.md")

// Signals must not read what a scenario plants: no metrics of the timeline and no names of phases.
func TestSignalsReadNoFaults(t *testing.T) {
	recorded := metricnames.Recorded(metricnames.Process, metricnames.Kube, metricnames.APIServer, metricnames.Etcd, metricnames.Scheduler,
		metricnames.ControllerManager, metricnames.Generator)
	isRecorded := func(metric string) bool {
		return slices.ContainsFunc(recorded, func(name string) bool {
			prefix, isPrefix := strings.CutSuffix(name, "*")
			return isPrefix && strings.HasPrefix(metric, prefix) || slices.Contains([]string{name, name + "_sum", name + "_count", name + "_bucket"}, metric)
		})
	}
	for _, s := range known.Signals {
		root, err := archive.NewParser().ParseExpr(s.query(10 * time.Second))
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		parser.Inspect(root, func(n parser.Node, _ []parser.Node) error {
			v, ok := n.(*parser.VectorSelector)
			if !ok {
				return nil
			}
			metric := alerting.MetricOf(v.LabelMatchers)
			if strings.Contains(metric, "fault") || strings.Contains(metric, "phase_active") {
				t.Errorf("%s reads %s, which reveals the planted fault", s.Name, metric)
			}
			if metric != "up" && !strings.HasPrefix(metric, "scrape_") && !isRecorded(metric) {
				t.Errorf("%s reads %s, which is not recorded", s.Name, metric)
			}
			for _, m := range v.LabelMatchers {
				if m.Name == "fault" || m.Name == "phase" {
					t.Errorf("%s matches %s", s.Name, m)
				}
			}
			return nil
		})
	}
}

func TestCatalogueIsWhole(t *testing.T) {
	names := map[string]bool{}
	for _, s := range known.Signals {
		if names[s.Name] || s.What == "" || s.Component == "" {
			t.Errorf("signal %q is incomplete, or its name occurs twice", s.Name)
		}
		names[s.Name] = true
		for _, part := range partName.FindAllStringSubmatch(s.written, -1) {
			if known.Parts[part[1]] == "" {
				t.Errorf("signal %s names the unknown part %s", s.Name, part[1])
			}
		}
		if s.Source != "" && (known.signal(s.Source) == nil || known.signal(s.Source).Source != "") {
			t.Errorf("signal %s: the source %s does not always have data", s.Name, s.Source)
		}
		if s.Over == nil && s.Least == 0 {
			t.Errorf("signal %s: any change would matter (give it least or over)", s.Name)
		}
	}
	kinds := map[string]bool{}
	for _, m := range known.Mechanisms {
		if kinds[m.Kind] || m.Title == "" || m.Look == "" || len(m.Any) == 0 {
			t.Errorf("mechanism %q is incomplete, or its kind occurs twice", m.Kind)
		}
		kinds[m.Kind] = true
		for _, name := range slices.Concat(m.Any, m.All, m.With, m.Unless, m.Without, m.Moves, m.Symptoms, slices.Concat(slices.Collect(maps.Values(m.MovesOf))...), m.Recorded, m.Exceeds, named(m), known.Exits.Signals, known.Exits.After) {
			if name, _, _ = strings.Cut(name, "@"); !names[name] {
				t.Errorf("mechanism %s names the unknown signal %s", m.Kind, name)
			}
		}
		if _, err := regexp.Compile(m.Span); err != nil {
			t.Errorf("mechanism %s: %v", m.Kind, err)
		}
		if m.Page != "" {
			if _, err := os.Stat("../../../../docs/incidents/" + m.Page + ".md"); err != nil {
				t.Errorf("mechanism %s: %v", m.Kind, err)
			}
		}
	}
}

// named returns the signals that a mechanism names individually.
func named(m mechanism) (names []string) {
	names = slices.Clone(m.WhenStarved)
	if m.Proof != "" {
		names = append(names, m.Proof)
	}
	if m.OnlyBy != nil {
		names = append(names, m.OnlyBy.Signal)
	}
	return names
}

// The page lists the content of the catalogue.
func TestDiagnosisDoc(t *testing.T) {
	const file = "../../../../docs/reference/diagnosis.md"
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, _, ok := strings.Cut(string(text), schemadoc.Marker)
	if !ok {
		t.Fatal("the page lacks the mark at which the generated part begins")
	}
	want := head + schemadoc.Marker + generated()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(text) {
		t.Error("docs/reference/diagnosis.md differs from the catalogue: run go test ./loadgen/internal/judge/diagnosis -update")
	}
}

func generated() string {
	var b strings.Builder
	b.WriteString("\n## Mechanisms\n\nThe condition `x` means that signal `x` deviates too, and \"not `x`\" that `x` does not deviate. How much a signal *changed* is the difference from its median in the comparison period. Links lead to incidents.\n\n| kind | what happened | any of these signals | conditions |\n|---|---|---|---|\n")
	for _, m := range known.Mechanisms {
		title := m.Title
		if m.Page != "" {
			title = fmt.Sprintf("[%s](../incidents/%s.md)", m.Title, m.Page)
		}
		if m.Load {
			title += " (*limit*)"
		}
		if m.OnlyBy != nil {
			title += fmt.Sprintf("; printed as `%s` (%s) if only `%s` deviates", m.OnlyBy.Kind, m.OnlyBy.Title, m.OnlyBy.Signal)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Kind, title, code(m.Any, " or "), strings.Join(slices.Concat(required(m), excluded(m)), "; "))
	}
	b.WriteString("\n## Signals\n\nThe column *deviates* says when a signal deviates. \"+3 ms, ×2\" means: at least 3 ms above the median in the comparison period, and at least twice the median. \"≥ 10 ms\" is a fixed bound. For a count of events, \"≥ 0.5\" means at least one. \"After a pause\": calls were made before the comparison period, but none in it. *This status* is the value of the label `code`.\n\n[catalogue.yaml](../../loadgen/internal/judge/diagnosis/catalogue.yaml) contains the PromQL of each signal.\n\n| signal | deviates |\n|---|---|\n")
	for _, s := range known.Signals {
		fmt.Fprintf(&b, "| `%s`: %s%s | %s%s |\n", s.Name, s.What, notes[s.Name], bounds(s), evaluations(s))
	}
	return b.String()
}

// notes explains signals whose name in reports is short, or the same as the name of another signal.
var notes = map[string]string{
	"peer-slow":       ", for etcd before 3.7",
	"wal-fsync":       " (mean time)",
	"backend-commit":  " (mean time)",
	"etcd-slow":       " (a symptom)",
	"watchers-behind": ". On a busy machine, up to nine of a resource do not count",
}

// required returns the conditions of a mechanism other than its first evidence.
func required(m mechanism) (all []string) {
	if len(m.All) > 0 {
		all = append(all, code(m.All, " and ")+minChange(m, ", which changed "))
	}
	if len(m.With) > 0 {
		all = append(all, code(m.With, " or "))
	}
	if m.OfLargest > 0 {
		all = append(all, fmt.Sprintf("%s changed here at least %g times as much as at any other component", code(m.Any, " or "), m.OfLargest))
	}
	if len(m.Exceeds) > 0 {
		all = append(all, fmt.Sprintf("%s changed more than %s", code(m.Any, " or "), code(m.Exceeds, " or ")))
	}
	if len(m.WhenStarved) > 0 {
		all = append(all, code(m.WhenStarved, " and ")+", if threads wait for processors")
	}
	if m.Proof != "" {
		all = append(all, fmt.Sprintf("`%s`, if %s deviates for over %s", m.Proof, code(m.Any, " or "), m.ProofAfter))
	}
	return all
}

// excluded returns the conditions under which a mechanism is not active.
func excluded(m mechanism) (all []string) {
	if len(m.Unless) > 0 {
		all = append(all, "not "+code(m.Unless, ", ")+minChange(m, ", if it changed "))
	}
	if len(m.Without) > 0 {
		all = append(all, "not "+code(m.Without, ", "))
	}
	return all
}

// minChange returns the minimum change of a signal of All or Unless after the given words, or "" if m has no such change.
func minChange(m mechanism, words string) string {
	switch m.Share {
	case 0:
		return ""
	case 1:
		return words + "at least as much as " + code(m.Any, " or ")
	}
	return fmt.Sprintf("%sat least %g times as much as %s", words, m.Share, code(m.Any, " or "))
}

func code(names []string, between string) string {
	var all []string
	for _, name := range names {
		all = append(all, "`"+name+"`")
	}
	return strings.Join(all, between)
}

func lasting(s signal) string {
	if s.Lasts == 0 {
		return ""
	}
	return fmt.Sprintf(", for %s", s.Lasts)
}

// evaluations returns the number of evaluations that must deviate, or "" for the usual number.
func evaluations(s signal) string {
	usual := signal{Expr: s.Expr}
	switch n := s.hold(); {
	case n == usual.hold() || s.Unit == unitEvent:
		return ""
	case n == 1:
		return " (one evaluation)"
	default:
		return fmt.Sprintf(" (%d evaluations)", n)
	}
}

// occurrence returns when a signal without a size deviates.
func occurrence(s signal) string {
	if n := s.hold(); n > 1 {
		return fmt.Sprintf("in %d evaluations", n)
	}
	return "first occurrence"
}

func bounds(s signal) string {
	switch {
	case s.Idle > 0:
		called := s
		called.Idle = 0
		return fmt.Sprintf("%s; or ≥ %s after a pause", bounds(called), value(s.Idle, &s))
	case s.Over != nil && s.Unit == unitEvent:
		return occurrence(s) + lasting(s)
	case s.Over != nil:
		return "≥ " + value(*s.Over, &s) + lasting(s)
	case s.Limit != nil:
		bounded := s
		bounded.Limit = nil
		return bounds(bounded) + "; or ≥ " + value(*s.Limit, &s)
	case s.Down:
		return fmt.Sprintf("%g%% lower", 100*s.Share)
	case s.Unit == unitEvent:
		return occurrence(s)
	case s.Times > 0:
		return fmt.Sprintf("+%s, ×%g", value(s.Least, &s), s.Times)
	}
	return "+" + value(s.Least, &s)
}

// Runs and diagnoses use the same bounds for a busy machine.
func TestMachineBoundsAreThoseOfRuns(t *testing.T) {
	for name, want := range map[string]float64{"machine-others": machine.MuchOther, "machine-steal": machine.Steal, "machine-memory": machine.Memory} {
		at := slices.IndexFunc(known.Signals, func(s signal) bool { return s.Name == name })
		if got := *known.Signals[at].Over; got != want {
			t.Errorf("%s: over %g, want %g", name, got, want)
		}
	}
	if want := fmt.Sprintf("$(busy) > bool %g", machine.Full); !strings.Contains(string(catalogueYAML), want) {
		t.Errorf("machine-others lacks %q", want)
	}
}
