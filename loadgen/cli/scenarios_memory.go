package cli

import (
	_ "embed"
	"fmt"
	"strings"

	"github.com/stormglass/stormglass/internal/digits"
)

// measured lists the peak memory of recorded runs, in MB: of the control plane (the sum of the largest resident sets of
// its processes) and of loadgen.
//
//go:embed measured.txt
var measured string

// recordedMemory returns the memory of recorded runs of a built-in scenario, or nil if none exist.
func recordedMemory(name string) *listedMemory {
	for line := range strings.Lines(measured) {
		rest, found := strings.CutPrefix(line, name+" ")
		if !found {
			continue
		}
		var plane, loadgen int64
		if _, err := fmt.Sscan(rest, &plane, &loadgen); err != nil {
			return nil
		}
		const megabyte = 1e6
		return &listedMemory{plane * megabyte, loadgen * megabyte}
	}
	return nil
}

// decimal formats a size in MB or GB: "989 MB", "1.12 GB".
func decimal(bytes int64) string {
	if bytes < 1e9 {
		return fmt.Sprintf("%.0f MB", float64(bytes)/1e6)
	}
	return digits.Format(float64(bytes)/1e9, 3) + " GB"
}
