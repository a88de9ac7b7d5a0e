package schemadoc

import "strconv"

const (
	// DurationUnit is a pattern that matches a unit of time.
	DurationUnit = `(ns|us|µs|μs|ms|s|m|h)`
	// DurationForm is a pattern that matches a duration. It accepts the durations that scenario.Duration accepts, and
	// also units in any order.
	DurationForm = `([0-9]*\.?[0-9]+` + DurationUnit + `([0-9]+(\.[0-9]+)?` + DurationUnit + `)*|0)`
)

// Duration returns the schema of a duration, which is a string or the number 0.
func Duration() Part {
	return Part{"type": []string{"string", "integer"}, "pattern": "^" + DurationForm + "$", "minimum": 0, "maximum": 0, "description": "A length of time, such as 30s, 2m or 250ms"}
}

// Enum returns the schema of a string with a fixed set of values. If a value looks like a number, it may be written
// without quotes.
func Enum(values []string) Part {
	var all []any
	for _, v := range values {
		all = append(all, v)
	}
	for _, v := range values {
		if n, err := strconv.ParseFloat(v, 64); err == nil && strconv.FormatFloat(n, 'f', -1, 64) == v {
			all = append(all, n)
		}
	}
	return Part{"enum": all}
}
