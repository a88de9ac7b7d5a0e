package result

// Custom holds the figures that a custom measurement, part of the Go program that ran the scenario, returned for a phase.
type Custom struct {
	Measurement string         `json:"measurement"`
	Figures     []CustomFigure `json:"figures,omitempty"`
	Error       string         `json:"error,omitempty"` // why there are no figures
}

// CustomFigure is a named value that a custom measurement returns.
type CustomFigure struct {
	Name  string  `json:"name"`  // name of the figure
	Value float64 `json:"value"` // 0 or more
	Unit  string  `json:"unit"`
}
