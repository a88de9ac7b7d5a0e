// Package digits formats numbers for people, with a few significant digits and without an exponent.
package digits

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Format rounds v to n significant digits. It keeps all digits before the decimal point and drops trailing zeros after
// it: 12.3, 1235, 0.5. It writes at most 12 decimals; a number that rounds to zero with 12 decimals is "0". It writes
// NaN and infinities like strconv.
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

// Change formats a relative change as a percentage with one decimal, such as "+4.8%" for 0.048. A change of less than
// 0.05% in either direction is "0%".
func Change(share float64) string {
	if math.Abs(100*share) < 0.05 {
		return "0%"
	}
	return fmt.Sprintf("%+.1f%%", 100*share)
}

// Count returns a number with its noun, such as "1 run" or "30 runs".
func Count[N int | int64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
