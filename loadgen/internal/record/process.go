package record

import (
	"bytes"
	"strconv"
)

// processStart is the value of process_start_time_seconds, or 0.
func processStart(text []byte) float64 {
	const name = "\nprocess_start_time_seconds "
	i := bytes.Index(text, []byte(name))
	if i < 0 {
		return 0
	}
	line, _, _ := bytes.Cut(text[i+len(name):], []byte("\n"))
	v, err := strconv.ParseFloat(string(bytes.TrimSpace(line)), 64)
	if err != nil {
		return 0
	}
	return v
}
