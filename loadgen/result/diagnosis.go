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
	Healthy   = "healthy"   // no cause, no symptom
	Diagnosed = "diagnosed" // the causes are named
	Unknown   = "unknown"   // symptoms without a cause
)

// Diagnosis names the causes of what went wrong between two times, from metrics alone.
type Diagnosis struct {
	Schema string  `json:"schema"` // stormglass.diagnosis/v1
	Calm   Span    `json:"calm"`   // what is compared with
	Under  Span    `json:"under"`  // what is diagnosed
	Answer string  `json:"answer"` // "healthy", "diagnosed" or "unknown"
	Causes []Cause `json:"causes"` // by the time of their beginning
	// Limits that were reached as the load grew: no causes
	Limits []Cause `json:"limits,omitempty"`
	// Symptoms that no cause explains
	Symptoms []Evidence `json:"symptoms"`
	// Standing: signs of a cause that the calm time has too: they began before it, or are always so
	Standing []Evidence `json:"standing,omitempty"`
	// Nearest causes, two of them, where the answer is "unknown"
	Nearest []Cause `json:"nearest,omitempty"`
	// Lacked: signals that had no data, by name
	Lacked []string `json:"lacked,omitempty"`
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
