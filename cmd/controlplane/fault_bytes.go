package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// byteCount is a flag's value in bytes: "4096", "16KiB", "1MiB", "2GiB".
type byteCount struct{ to *int64 }

// Type returns the value's name in help.
func (byteCount) Type() string { return "size" }

// String is the value in the largest unit that it is a multiple of.
func (b byteCount) String() string {
	if b.to == nil || *b.to == 0 {
		return ""
	}
	return formatBytes(*b.to)
}

// Set reads the value.
func (b byteCount) Set(text string) error {
	number, unit := text, int64(1)
	for _, u := range byteUnits() {
		if rest, ok := strings.CutSuffix(text, u.name); ok {
			number, unit = rest, u.bytes
			break
		}
	}
	n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
	if err != nil || n < 0 || n > math.MaxInt64/unit {
		return fmt.Errorf("is no size (write it as 16MiB: a whole number of bytes, KiB, MiB or GiB)")
	}
	*b.to = n * unit
	return nil
}

type byteUnit struct {
	name  string
	bytes int64
}

func byteUnits() []byteUnit { return []byteUnit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} }

func formatBytes(n int64) string {
	for _, u := range byteUnits() {
		if n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
