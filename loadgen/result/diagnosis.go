package result

import (
	"slices"
	"strings"
	"time"
)

// DiagnosisSchema is the version of a diagnosis' JSON.
const DiagnosisSchema = "stormglass.diagnosis/v1"

// The answers of a diagnosis.
const (
	Healthy    = "healthy"     // no symptom, compared with a calm time, from all signals
	Diagnosed  = "diagnosed"   // the causes are named
	Unknown    = "unknown"     // symptoms without a known cause
	CannotTell = "cannot tell" // no symptom was seen, and Doubts says what was not
)

// Diagnosis names the causes of what went wrong between two times, from metrics alone.
type Diagnosis struct {
	Schema string `json:"schema"` // stormglass.diagnosis/v1
	Calm   Span   `json:"calm"`   // what is compared with
	Under  Span   `json:"under"`  // what is diagnosed
	// Reference: directory of the run that is compared with; Calm is then its times, moved before this run
	Reference string `json:"reference,omitempty"`
	Answer    string `json:"answer"` // "healthy", "diagnosed", "unknown" or "cannot tell"
	// Doubts: why a healthy cluster could not be told from one in trouble, a line each
	Doubts []string `json:"doubts,omitempty"`
	Causes []Cause  `json:"causes"` // by the time of their beginning
	// Limits that were reached as the load grew: no causes
	Limits []Cause `json:"limits,omitempty"`
	// Symptoms without a known cause; a failed gate is one
	Symptoms []Evidence `json:"symptoms"`
	// Machine that the generator runs on; nil: not recorded
	Machine *MachineUse `json:"machine,omitempty"`
	// Standing: signs of a cause that the calm time has too: they began before it, or are always so
	Standing []Evidence `json:"standing,omitempty"`
	// Nearest causes, two of them, where the answer is "unknown"
	Nearest []Cause `json:"nearest,omitempty"`
	// Lacked: signals that had no data, by name
	Lacked []string `json:"lacked,omitempty"`
}

// MachineUse compares what other programs took of the generator's machine in the diagnosed time with the calm time.
type MachineUse struct {
	Processors float64 `json:"processors"`
	// Others: processors that other programs used, without the clients of the API server among them
	Others Compared `json:"others"`
	// Steal: processors that the hypervisor gave to other machines
	Steal Compared `json:"steal"`
	// MemoryWait and DiskWait: share of the time in which some process waited for memory or for a disk
	MemoryWait *Compared `json:"memoryWait,omitempty"`
	DiskWait   *Compared `json:"diskWait,omitempty"`
}

// Compared is the mean of a figure in the calm time and in the diagnosed one.
type Compared struct {
	Calm  *float64 `json:"calm"` // null: not recorded then
	Under float64  `json:"under"`
}

// Span is a stretch of time.
type Span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Cause is a mechanism that explains what was seen.
type Cause struct {
	Kind       string     `json:"kind"` // of the catalogue: slow-wal-fsync
	Title      string     `json:"title"`
	Components []string   `json:"components"` // instances, or what the kind is about: a webhook's name, a priority level
	Began      time.Time  `json:"began"`
	Ended      time.Time  `json:"ended,omitzero"` // zero: it goes on
	Sentence   string     `json:"sentence"`       // with the evidence
	Evidence   []Evidence `json:"evidence"`
	Calm       []string   `json:"calm"`     // what stayed calm, which rules other causes out
	Explains   []Explains `json:"explains"` // what follows from it
	Look       string     `json:"look"`     // what to look at
	Page       string     `json:"page,omitempty"`
	Strength   float64    `json:"strength"` // of the strongest evidence, in standard deviations of the calm time
	// Limit: it is a growing load or the machine, and blames no component
	Limit bool `json:"limit,omitempty"`
}

// Explains is something that follows from a cause.
type Explains struct {
	What       string   `json:"what"`
	Components []string `json:"components"`
}

// Evidence is a signal that moved.
type Evidence struct {
	Signal    string    `json:"signal"`
	What      string    `json:"what"`
	Component string    `json:"component"`
	Unit      string    `json:"unit"`
	Calm      *float64  `json:"calm"`  // median; null: there was none
	Under     float64   `json:"under"` // median while it deviated
	Began     time.Time `json:"began"`
	Ended     time.Time `json:"ended,omitzero"` // zero: it goes on
	Strength  float64   `json:"strength"`       // |under - calm| in robust standard deviations of the calm time
}

// Gist is the answer with the kinds and components of causes and limits and with the symptoms, without figures and times.
func (d Diagnosis) Gist() string {
	said := []string{d.Answer}
	for _, c := range d.Causes {
		said = append(said, c.Kind+" "+strings.Join(c.Components, ","))
	}
	for _, c := range d.Limits {
		said = append(said, "limit "+c.Kind+" "+strings.Join(c.Components, ","))
	}
	var symptoms []string
	for _, e := range d.Symptoms {
		symptoms = append(symptoms, e.What+" of "+e.Component)
	}
	slices.Sort(symptoms) // their order tells nothing, and one may come again
	return strings.Join(append(said, slices.Compact(symptoms)...), "; ")
}
