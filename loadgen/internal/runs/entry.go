// Package runs indexes folders of runs, comparisons and capacity searches. It reads only their small files: run.json,
// result.json and the files of comparisons. It never changes a folder, and it keeps a bounded extract of each run.
package runs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/machine"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// Kind says what a directory contains.
type Kind string

// The values of Kind.
const (
	Run      Kind = "run"
	Variants Kind = "variants" // the runs of a scenario's variants
	AB       Kind = "A/B"      // an A/B comparison
	Capacity Kind = "capacity" // a capacity search
)

// Verdicts of entries, in addition to the verdicts of runs and the answers of comparisons.
const (
	Running  = "running"
	Unjudged = "not judged" // the run was killed before it was judged
	Damaged  = "damaged"    // a file that the index needs is damaged
)

// Entry is a directory in the index. All texts are free of control characters.
type Entry struct {
	Path     string `json:"path"` // path below the folder, with slashes; unique in the index
	Dir      string `json:"-"`    // path of the directory
	Kind     Kind   `json:"kind"`
	Parent   string `json:"parent,omitempty"` // Path of the comparison or search that contains this run, or ""
	ID       string `json:"id,omitempty"`     // ID of the run
	Scenario string `json:"scenario"`
	Variant  string `json:"variant,omitempty"`
	// Verdict is the verdict of a run, the answer of a comparison or search, or Running, Unjudged or Damaged.
	Verdict  string            `json:"verdict"`
	Style    string            `json:"-"`               // style of Verdict: "pass", "fail", "nodata" or "pending"
	State    string            `json:"phase,omitempty"` // current phase of an active run
	Started  time.Time         `json:"started"`
	Ended    time.Time         `json:"ended,omitzero"`    // end of the run; zero if the run is active or was killed
	Seconds  float64           `json:"seconds,omitempty"` // time from the start of the first phase to the end of the last
	Versions result.Versions   `json:"versions"`
	Host     result.Host       `json:"host"`
	Labels   map[string]string `json:"labels,omitempty"`
	Settings []string          `json:"set,omitempty"` // overrides of the scenario, as given to --set
	Values   []Value           `json:"values,omitempty"`
	Why      []string          `json:"reasons,omitempty"` // reasons for the verdict, failed gates and diagnosed causes
	// Unfit is the reason why a trend must not use the run, or "".
	Unfit string `json:"unfit,omitempty"`
	// Others is the share of processor time that other programs used, or nil if it is unknown.
	Others *float64 `json:"otherPrograms,omitempty"`
	// Page is the name of the page in the directory, such as report.html, or "".
	Page string `json:"page,omitempty"`
	// Digest is the SHA-256 of the scenario, or "" if unknown.
	Digest string `json:"scenarioDigest,omitempty"`
}

// Value is a gate, a compared metric or a key metric of a run.
type Value struct {
	Name    string         `json:"name"`
	Value   *float64       `json:"value"` // nil: no data
	Unit    string         `json:"unit"`
	Better  string         `json:"better"`            // "lower" or "higher"
	Verdict result.Verdict `json:"verdict,omitempty"` // empty unless the value belongs to a gate
	Key     bool           `json:"key,omitempty"`     // whether this is a key metric, which no scenario names
	Bound   float64        `json:"bound,omitempty"`
}

// Bounds of an entry. They limit the memory of the index to about 10 kB per directory.
const (
	maxValues = 100
	maxWhy    = 30
	maxText   = 300 // maximum number of characters of a text
)

// Version returns the versions of Stormglass and Kubernetes in the run.
func (e *Entry) Version() string {
	return strings.TrimSpace("Stormglass " + cmp.Or(e.Versions.Stormglass, "?") + ", Kubernetes " + cmp.Or(e.Versions.Kubernetes, "?"))
}

// Machine returns the properties of the generator's machine in one line.
func (e *Entry) Machine() string {
	if e.Host.CPUs == 0 {
		return ""
	}
	return result.Facts(e.Versions, e.Host)["host"]
}

// Judged reports whether the entry is a run with values.
func (e *Entry) Judged() bool { return e.Kind == Run && len(e.Values) > 0 }

// Like reports whether both runs have the same scenario and variant.
func (e *Entry) Like(other *Entry) bool {
	return e.Scenario == other.Scenario && e.Variant == other.Variant
}

// Name returns the scenario and the variant of the run.
func (e *Entry) Name() string {
	if e.Variant == "" {
		return e.Scenario
	}
	return e.Scenario + " (" + e.Variant + ")"
}

// LabelTexts returns the labels in the form name=value, sorted.
func (e *Entry) LabelTexts() []string {
	var all []string
	for name, v := range e.Labels {
		all = append(all, name+"="+v)
	}
	slices.Sort(all)
	return all
}

// extract is the part of result.json that an entry needs.
type extract struct {
	Verdict      result.Verdict `json:"verdict"`
	Run          result.Run     `json:"run"`
	Reasons      []string       `json:"reasons"`
	BusyMachine  []string       `json:"busyMachine"`
	Gates        []result.Gate  `json:"gates"`
	Figures      []result.Figure
	Key          []result.KeyMetric `json:"keyMetrics"`
	Measurements struct {
		Generator struct {
			Saturated []string `json:"saturated"`
		} `json:"generator"`
		Phases []struct {
			Start   time.Time       `json:"start"`
			End     time.Time       `json:"end"`
			Machine *result.Machine `json:"machine"`
		} `json:"phases"`
	} `json:"measurements"`
	Diagnosis *struct {
		Causes []struct {
			Kind       string   `json:"kind"`
			Title      string   `json:"title"`
			Components []string `json:"components"`
		} `json:"causes"`
	} `json:"diagnosis"`
}

// Check implements result.Checked.
func (*extract) Check() error { return nil }

// describe sets the fields of the entry that come from run.json.
func (e *Entry) describe(r result.Run) {
	e.ID, e.Scenario, e.Variant, e.Started, e.Ended = short(r.ID), short(r.Scenario), short(r.Variant), r.Started, r.Ended
	e.Host, e.Digest = r.Host, short(r.Files[result.ScenarioFile])
	e.Host.CPUModel, e.Host.Kernel, e.Host.OS = short(e.Host.CPUModel), short(e.Host.Kernel), short(e.Host.OS)
	e.Versions = result.Versions{Stormglass: short(r.Versions.Stormglass), Kubernetes: short(r.Versions.Kubernetes), Etcd: short(r.Versions.Etcd), Go: short(r.Versions.Go)}
	e.Settings = shortened(r.Overrides)
	if result.CheckLabels(r.Labels) == nil {
		e.Labels = r.Labels
	}
	if r.Failure != "" {
		e.why("the environment failed: " + r.Failure)
	}
	if cut := r.CutShort(); cut != "" {
		e.Unfit = short(cut)
	}
}

// judged sets the fields of the entry that come from result.json.
func (e *Entry) judged(x extract) {
	e.describe(x.Run)
	e.Verdict, e.Style = short(string(x.Verdict)), StyleOf(x.Verdict)
	for _, why := range x.Reasons {
		e.why(why)
	}
	for _, g := range x.Gates {
		better := "lower"
		if g.Op == ">=" {
			better = "higher"
		}
		e.value(Value{Name: short(g.Name), Value: g.Value, Unit: g.Unit, Better: better, Verdict: g.Verdict, Bound: g.Bound})
		named := func(why string) bool { return strings.HasPrefix(why, g.Name+": ") }
		if g.Verdict != result.Pass && !slices.ContainsFunc(x.Reasons, named) {
			e.why(fmt.Sprintf("gate %s: %s: %s", g.Name, g.Verdict, g.Detail))
		}
	}
	for _, f := range x.Figures {
		e.value(Value{Name: short(f.Name), Value: f.Value, Unit: f.Unit, Better: f.Better})
	}
	for _, k := range x.Key {
		for _, row := range k.Rows {
			name := short(k.Name + " " + row.Label)
			if row.P99 != nil {
				e.value(Value{Name: name + " p99", Value: row.P99, Unit: string(scenario.Seconds), Better: "lower", Key: true})
			} else {
				e.value(Value{Name: name, Value: row.Value, Unit: string(scenario.Count), Better: "lower", Key: true})
			}
		}
	}
	if x.Diagnosis != nil {
		for _, c := range x.Diagnosis.Causes {
			e.why(fmt.Sprintf("cause: %s (%s): %s", c.Title, c.Kind, strings.Join(c.Components, ", ")))
		}
	}
	if all := x.Measurements.Generator.Saturated; e.Unfit == "" && len(all) > 0 {
		e.Unfit = short(all[0])
	}
	if p := x.Measurements.Phases; len(p) > 0 {
		e.Seconds = p[len(p)-1].End.Sub(p[0].Start).Seconds()
	}
	for _, busy := range x.BusyMachine {
		e.why("busy machine: " + busy)
	}
	e.Others = others(x)
	if e.Others != nil && *e.Others >= machine.MuchOther && len(x.BusyMachine) == 0 {
		e.why(fmt.Sprintf("other programs used %.0f%% of the processor time", 100**e.Others))
	}
}

// others returns the share of processor time that other programs used in the phases of a run, or nil.
func others(x extract) *float64 {
	phases := make([]result.Phase, len(x.Measurements.Phases))
	for i, p := range x.Measurements.Phases {
		phases[i] = result.Phase{Start: p.Start, End: p.End, Machine: p.Machine}
	}
	sum, seconds := machine.Sum(phases)
	facts, ok := machine.Of(sum, seconds, x.Run.Host.CPUs, machine.Ours(x.Run))
	if !ok || facts.Others == nil {
		return nil
	}
	return new(facts.OtherShare())
}

// value adds a gate or a metric, unless the entry already has a value with the same name.
func (e *Entry) value(v Value) {
	v.Unit, v.Better, v.Verdict = short(v.Unit), short(v.Better), result.Verdict(short(string(v.Verdict)))
	if len(e.Values) < maxValues && !slices.ContainsFunc(e.Values, func(known Value) bool { return known.Name == v.Name }) {
		e.Values = append(e.Values, v)
	}
}

func (e *Entry) why(text string) {
	if len(e.Why) < maxWhy {
		e.Why = append(e.Why, short(text))
	}
}

// short returns a text from a file as one line of limited length, without control characters. The result does not share
// memory with the file.
func short(text string) string {
	return strings.Clone(terminal.Shorten(terminal.Clean(text), maxText))
}

func shortened(all []string) (out []string) {
	for _, text := range all[:min(len(all), maxWhy)] {
		out = append(out, short(text))
	}
	return out
}

// StyleOf returns the style of a verdict on a page.
func StyleOf(v result.Verdict) string {
	switch v {
	case result.Pass:
		return "pass"
	case result.Fail:
		return "fail"
	}
	return "nodata"
}
