package scenario

// Variant is the scenario with some fields set otherwise: the incident and its
// remedy, side by side. `loadgen run NAME --variant all` runs every variant, each
// on a plane of its own.
type Variant struct {
	// Name of the variant, by which --variant, gates and results refer to it.
	Name string `yaml:"name"`
	// Description in a sentence.
	Description string `yaml:"description,omitempty"`
	// Set are fields of the scenario by path, as after --set, with their
	// values: "controlPlane.etcd.topology: external". They are laid over the
	// scenario and over --set.
	Set map[string]any `yaml:"set,omitempty"`
}

// Figure is one row of the table that sets variants side by side: what a gate
// would judge, without a bound.
type Figure struct {
	// Name of the row, unique in the scenario.
	Name string `yaml:"name"`
	// Objective is a built-in objective. Exactly one of Objective and Expr is set.
	Objective string `yaml:"objective,omitempty"`
	// Expr is PromQL, as a gate's.
	Expr string `yaml:"expr,omitempty"`
	// Unit of what Expr gives, as a signal's. Default: a bare number.
	Unit string `yaml:"unit,omitempty"`
	// Load restricts a client-side objective to the load of that name.
	Load string `yaml:"load,omitempty"`
	// Signal restricts signal-moved and signal-returned to the signal of that name.
	Signal string `yaml:"signal,omitempty"`
	// Over names the phases. Default: all of them.
	Over []string `yaml:"over,omitempty" zero:"all phases; leave it out for that"`
}

// Signal is an incident's own metric: it lies still in the steady phases,
// moves under the fault, and comes back after it.
type Signal struct {
	// Name of the signal, unique in the scenario.
	Name string `yaml:"name"`
	// Expr is PromQL that gives one series or scalar, evaluated again and again
	// over the phases; $window is two and a half scrape intervals
	// (docs/reference/recovery.md).
	Expr string `yaml:"expr"`
	// Unit of what Expr gives, for tables and charts: "seconds", "ratio", "bytes",
	// "count", "per second" or "per hour". Default: a bare number.
	Unit string `yaml:"unit,omitempty"`
	// Steady names the phases without the fault, from which its noise is known.
	Steady []string `yaml:"steady"`
	// Under names the phases in which the fault is in force.
	Under []string `yaml:"under"`
	// After names the phases by whose end it has come back.
	After []string `yaml:"after,omitempty"`
}
