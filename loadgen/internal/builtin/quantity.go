package builtin

import (
	"regexp"

	"k8s.io/apimachinery/pkg/api/resource"
)

var hugeExponent = regexp.MustCompile(`[eE][-+]?[0-9]{3}`)

// hugeQuantity reports whether a quantity is too long or has too large an exponent. Package resource computes exact
// powers of ten, so it would take too long to parse 1e-2147483648 or to compare 1e2147483647.
func hugeQuantity(text string) bool { return len(text) > 100 || hugeExponent.MatchString(text) }

// ParseQuantity parses a Kubernetes quantity whose exponent has at most two digits.
func ParseQuantity(text string) (resource.Quantity, error) {
	if hugeQuantity(text) {
		return resource.Quantity{}, resource.ErrFormatWrong
	}
	return resource.ParseQuantity(text)
}

// Milli returns a quantity in thousandths, or 0 if text is not a quantity.
func Milli(text string) int64 {
	q, err := ParseQuantity(text)
	if err != nil {
		return 0
	}
	return q.MilliValue()
}
