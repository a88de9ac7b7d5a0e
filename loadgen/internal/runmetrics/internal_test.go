package runmetrics

// Seconds exports seconds for the tests.
func Seconds(ms int64) float64 { return seconds(ms) }
