package recordings

// Seconds is seconds, for the tests.
func Seconds(ms int64) float64 { return seconds(ms) }
