// Package digits writes numbers as people read them: with a few significant digits, and never with an exponent.
package digits

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Format rounds v to n significant digits, but never before the point, and leaves out zeros after it: 12.3, 1235, 0.5.
// A number below 1e-12 is 0. NaN and infinities are written as strconv does.
func Format(v float64, n int) string {
	if v == 0 {
		return "0"
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	decimals := max(n-1-int(math.Floor(math.Log10(math.Abs(v)))), 0)
	s := strconv.FormatFloat(v, 'f', min(decimals, 12), 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	if s == "-0" {
		return "0"
	}
	return s
}

// Change writes a share as a change in percent with one decimal, "+4.8%"; below that resolution it is "0%".
func Change(share float64) string {
	if math.Abs(100*share) < 0.05 {
		return "0%"
	}
	return fmt.Sprintf("%+.1f%%", 100*share)
}
