package result

// Custom holds the figures of one measurement by the Go program that ran the scenario, in one phase.
type Custom struct {
	Measurement string         `json:"measurement"`
	Figures     []CustomFigure `json:"figures,omitempty"`
	Error       string         `json:"error,omitempty"` // why there are no figures
}

// CustomFigure is one named value.
type CustomFigure struct {
	Name  string  `json:"name"`  // name of the figure
	Value float64 `json:"value"` // 0 or more
	Unit  string  `json:"unit"`
}
