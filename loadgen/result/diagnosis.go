package result

import (
	"slices"
	"strings"
	"time"
)

// DiagnosisSchema is the version of the JSON of a diagnosis.
const DiagnosisSchema = "stormglass.diagnosis/v1"

// The values of Diagnosis.Answer.
const (
	Healthy    = "healthy"     // no signal deviated from the comparison period (a time without problems)
	Diagnosed  = "diagnosed"   // causes were found
	Unknown    = "unknown"     // symptoms without a known cause
	CannotTell = "cannot tell" // no symptom was found, but Doubts says why the cluster may not be healthy
)

// Diagnosis names the causes of problems in a time range, found from metrics alone ([diagnosis](diagnosis.md)).
type Diagnosis struct {
	Schema    string      `json:"schema"`              // always stormglass.diagnosis/v1
	Calm      Span        `json:"calm"`                // comparison period, a time without problems
	Under     Span        `json:"under"`               // the diagnosed time
	Reference string      `json:"reference,omitempty"` // directory of the healthy run with which this run is compared
	Answer    string      `json:"answer"`              // "healthy", "diagnosed", "unknown" or "cannot tell"
	Doubts    []string    `json:"doubts,omitempty"`    // why the cluster may be unhealthy although no symptom was found
	Causes    []Cause     `json:"causes"`              // sorted by their start
	Limits    []Cause     `json:"limits,omitempty"`    // limits that the growing load reached; they are not causes
	Symptoms  []Evidence  `json:"symptoms"`            // symptoms without a known cause, including failed gates
	Machine   *MachineUse `json:"machine,omitempty"`
	// Exits: components that ended without a fault, and when they were ready again
	Exits []string `json:"exits,omitempty"`
	// Standing: signs of a cause that were already present in the comparison period
	Standing []Evidence `json:"standing,omitempty"`
	// Nearest: up to two causes that almost explain the symptoms, if the answer is "unknown"
	Nearest []Cause  `json:"nearest,omitempty"`
	Lacked  []string `json:"lacked,omitempty"` // signals that had no data
}

// MachineUse compares the use of the generator's machine in the comparison period and in the diagnosed time.
type MachineUse struct {
	Processors float64   `json:"processors"`
	Used       *Compared `json:"used,omitempty"` // processors used by all programs
	Others     Compared  `json:"others"`         // processors used by other programs, without clients of the API server
	// Steal: processors that the hypervisor gave to other machines
	Steal      Compared  `json:"steal"`
	MemoryWait *Compared `json:"memoryWait,omitempty"` // fraction of the time in which some process waited for memory
	DiskWait   *Compared `json:"diskWait,omitempty"`   // fraction of the time in which some process waited for a disk
}

// Compared holds the mean of a value in the comparison period and in the diagnosed time.
type Compared struct {
	Calm  *float64 `json:"calm"` // null: not recorded
	Under float64  `json:"under"`
}

// Span is a period of time.
type Span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Cause is a mechanism, such as slow fsyncs, that explains the symptoms.
type Cause struct {
	Kind  string `json:"kind"` // name in the [catalogue](diagnosis.md#mechanisms), such as slow-wal-fsync
	Title string `json:"title"`
	// Components: affected instances, or another affected object such as a webhook or a priority level
	Components []string    `json:"components"`
	Began      time.Time   `json:"began"`          // when the first evidence began
	Ended      time.Time   `json:"ended,omitzero"` // absent: not yet ended
	Sentence   string      `json:"sentence"`       // the cause and its evidence in words
	Evidence   []Evidence  `json:"evidence"`
	Calm       []string    `json:"calm"` // signals that did not deviate; they rule out other causes
	Explains   []Explains  `json:"explains"`
	Look       string      `json:"look"`           // what to examine next
	Page       string      `json:"page,omitempty"` // documentation page about the cause
	Strength   float64     `json:"strength"`       // highest strength of the cause's evidence
	Trace      *CauseTrace `json:"trace,omitempty"`
	Limit      bool        `json:"limit,omitempty"` // the cause is the load or the machine, not a component
}

// Explains is an effect of a cause, with the signals that show it.
type Explains struct {
	What       string   `json:"what"` // the effect in words
	Components []string `json:"components"`
}

// Evidence is a signal whose values in the diagnosed time deviated from the comparison period.
type Evidence struct {
	Signal    string    `json:"signal"`
	What      string    `json:"what"` // the signal in words
	Component string    `json:"component"`
	Unit      string    `json:"unit"`
	Calm      *float64  `json:"calm"`  // median in the comparison period; null: no value
	Under     float64   `json:"under"` // median while the signal deviated
	Began     time.Time `json:"began"` // when the signal began to deviate
	Ended     time.Time `json:"ended,omitzero"`
	Strength  float64   `json:"strength"` // |under - calm| in robust standard deviations of the comparison period
}

// Gist returns the answer, the causes and limits (kind and components), and the symptoms. It omits numbers and times.
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
	slices.Sort(symptoms) // their order has no meaning, and there may be duplicates
	return strings.Join(append(said, slices.Compact(symptoms)...), "; ")
}
