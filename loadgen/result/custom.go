package result

// Custom holds the figures of one measurement in a phase. The Go program that ran the scenario measured them.
type Custom struct {
	Measurement string         `json:"measurement"`
	Figures     []CustomFigure `json:"figures,omitempty"`
	Error       string         `json:"error,omitempty"` // why there are no figures
}

// CustomFigure is one named value.
type CustomFigure struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"` // 0 or more
	// Unit: "seconds", "ratio", "bytes", "count", "per hour", "per second", or "" for a bare number
	Unit string `json:"unit"`
}
