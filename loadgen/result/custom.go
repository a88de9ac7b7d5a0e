package result

// Custom holds the values that a custom measurement of your Go program returned for a phase.
type Custom struct {
	Measurement string         `json:"measurement"`
	Figures     []CustomFigure `json:"figures,omitempty"`
	Error       string         `json:"error,omitempty"` // why the measurement has no values
}

// CustomFigure is a named value that a custom measurement returns.
type CustomFigure struct {
	Name  string  `json:"name"` // name of the figure
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
}
