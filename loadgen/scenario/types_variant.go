package scenario

// Variant is the scenario with some fields set otherwise, as an incident's remedy.
type Variant struct {
	Name        string `yaml:"name"`                  // unique
	Description string `yaml:"description,omitempty"` // in a sentence
	// Set: fields by path, laid over the scenario and over --set
	Set map[string]any `yaml:"set,omitempty"`
}

// Figure is one row of the table of variants: a gate without a bound.
type Figure struct {
	Name      string   `yaml:"name"`                                                    // unique
	Objective string   `yaml:"objective,omitempty"`                                     // built-in; one of Objective and Expr
	Expr      string   `yaml:"expr,omitempty"`                                          // PromQL, as a gate's
	Unit      string   `yaml:"unit,omitempty"`                                          // of Expr, as a signal's
	Load      string   `yaml:"load,omitempty"`                                          // whose client-side objective is judged
	Signal    string   `yaml:"signal,omitempty"`                                        // of signal-moved and signal-returned
	Over      []string `yaml:"over,omitempty" zero:"all phases; leave it out for that"` // phases, default all
}

// Signal is an incident's own metric: it lies still in the steady phases,
// moves under the fault, and comes back.
type Signal struct {
	Name string `yaml:"name"` // unique
	// Expr: PromQL with one result (docs/reference/recovery.md)
	Expr string `yaml:"expr"`
	// Unit: "seconds", "ratio", "bytes", "count", "per second" or "per hour"; default
	// a bare number.
	Unit   string   `yaml:"unit,omitempty"`
	Steady []string `yaml:"steady"`          // phases without the fault, for its noise
	Under  []string `yaml:"under"`           // phases with the fault
	After  []string `yaml:"after,omitempty"` // phases by whose end it has returned
}
