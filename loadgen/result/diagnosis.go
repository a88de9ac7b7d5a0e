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
	Healthy    = "healthy"     // no signal showed a symptom, compared with a calm time
	Diagnosed  = "diagnosed"   // causes were found
	Unknown    = "unknown"     // symptoms without a known cause
	CannotTell = "cannot tell" // no symptom was found, but Doubts says why the cluster may not be healthy
)

// Diagnosis names the causes of problems between two times, from metrics alone.
type Diagnosis struct {
	Schema string `json:"schema"` // stormglass.diagnosis/v1
	Calm   Span   `json:"calm"`   // the calm time to compare with
	Under  Span   `json:"under"`  // the diagnosed time
	// Reference: directory of the run to compare with; calm then holds the times of that run, shifted to before this run
	Reference string `json:"reference,omitempty"`
	Answer    string `json:"answer"` // "healthy", "diagnosed", "unknown" or "cannot tell"
	// Doubts: why the cluster may not be healthy although no symptom was found, one line each
	Doubts []string `json:"doubts,omitempty"`
	Causes []Cause  `json:"causes"` // sorted by start
	// Limits: limits that the growing load reached; they are not causes
	Limits []Cause `json:"limits,omitempty"`
	// Symptoms: symptoms without a known cause; a failed gate is a symptom
	Symptoms []Evidence `json:"symptoms"`
	// Machine: the machine that the generator runs on; null: not recorded
	Machine *MachineUse `json:"machine,omitempty"`
	// Standing: signs of a cause that also exist in the calm time: they began earlier, or are always present
	Standing []Evidence `json:"standing,omitempty"`
	// Nearest: the two nearest causes, if the answer is "unknown"
	Nearest []Cause `json:"nearest,omitempty"`
	// Lacked: names of signals that had no data
	Lacked []string `json:"lacked,omitempty"`
}

// MachineUse compares the use of the generator's machine by other programs in the calm time and in the diagnosed time.
type MachineUse struct {
	Processors float64 `json:"processors"`
	// Others: processors that other programs used, without clients of the API server
	Others Compared `json:"others"`
	// Steal: processors that the hypervisor gave to other machines
	Steal Compared `json:"steal"`
	// MemoryWait and DiskWait: share of the time during which some process waited for memory or for a disk
	MemoryWait *Compared `json:"memoryWait,omitempty"`
	DiskWait   *Compared `json:"diskWait,omitempty"`
}

// Compared is the mean of a figure in the calm time and in the diagnosed time.
type Compared struct {
	Calm  *float64 `json:"calm"` // null: not recorded in the calm time
	Under float64  `json:"under"`
}

// Span is a stretch of time.
type Span struct {
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Cause is a mechanism that explains the symptoms.
type Cause struct {
	Kind       string     `json:"kind"` // name in the catalogue, as slow-wal-fsync
	Title      string     `json:"title"`
	Components []string   `json:"components"` // instances, or the subject of the kind, such as a webhook or a priority level
	Began      time.Time  `json:"began"`
	Ended      time.Time  `json:"ended,omitzero"` // zero: not ended
	Sentence   string     `json:"sentence"`       // the cause and its evidence in words
	Evidence   []Evidence `json:"evidence"`
	Calm       []string   `json:"calm"`     // signals that stayed calm, and so rule out other causes
	Explains   []Explains `json:"explains"` // the effects of the cause
	Look       string     `json:"look"`     // what to look at next
	Page       string     `json:"page,omitempty"`
	Strength   float64    `json:"strength"` // strength of the strongest evidence, in standard deviations of the calm time
	// Limit: the cause is a growing load or the machine, not a component
	Limit bool `json:"limit,omitempty"`
}

// Explains is an effect of a cause.
type Explains struct {
	What       string   `json:"what"`
	Components []string `json:"components"`
}

// Evidence is a signal that deviated.
type Evidence struct {
	Signal    string    `json:"signal"`
	What      string    `json:"what"`
	Component string    `json:"component"`
	Unit      string    `json:"unit"`
	Calm      *float64  `json:"calm"`  // median in the calm time; null: no value
	Under     float64   `json:"under"` // median while it deviated
	Began     time.Time `json:"began"`
	Ended     time.Time `json:"ended,omitzero"` // zero: not ended
	Strength  float64   `json:"strength"`       // |under - calm| in robust standard deviations of the calm time
}

// Gist returns the answer, the causes and limits (kind and components), and the symptoms. It omits figures and times.
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
