package scenario

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/digits"
)

// Duration is a length of time written as "30s", "2m", "250ms".
type Duration time.Duration

// D returns the duration as a time.Duration.
func (d Duration) D() time.Duration { return time.Duration(d) }

// String returns the shortest notation: "5m", not "5m0s".
func (d Duration) String() string {
	s := time.Duration(d).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// MarshalText encodes the duration in the notation that UnmarshalText accepts.
func (d Duration) MarshalText() ([]byte, error) { return []byte(d.String()), nil }

// Spread is a random length of time. "2s" is always 2 s. "2s..20s" is a log-normal distribution with the median 2 s and
// the 99th percentile 20 s.
type Spread struct{ Median, P99 time.Duration }

// UnmarshalText parses a spread.
func (s *Spread) UnmarshalText(text []byte) error {
	if near := nearSpread(string(text)); near != "" {
		return fmt.Errorf("%q is not a spread; write %s", text, near)
	}
	low, high, two := strings.Cut(string(text), "..")
	var median, p99 Duration
	if err := median.UnmarshalText([]byte(low)); err != nil {
		return err
	}
	p99 = median
	if two {
		if err := p99.UnmarshalText([]byte(high)); err != nil {
			return err
		}
		if median == 0 || p99 < median {
			return fmt.Errorf("%q is not a spread; write MEDIAN..P99, for example 2s..20s", text)
		}
	}
	s.Median, s.P99 = median.D(), p99.D()
	return nil
}

// MarshalText encodes the spread in the notation that UnmarshalText accepts.
func (s Spread) MarshalText() ([]byte, error) {
	text := Duration(s.Median).String()
	if s.P99 != s.Median {
		text += ".." + Duration(s.P99).String()
	}
	return []byte(text), nil
}

// At returns the q-quantile of the distribution, for 0 < q < 1.
func (s Spread) At(q float64) time.Duration {
	if s.P99 == s.Median {
		return s.Median
	}
	// ln(P99/median) is 2.3263 standard deviations of the normal distribution of ln(time).
	const z99 = 2.3263478740408408
	sigma := math.Log(float64(s.P99)/float64(s.Median)) / z99
	z := math.Sqrt2 * math.Erfinv(2*q-1)
	return time.Duration(float64(s.Median) * math.Exp(sigma*z))
}

// Rate is events per second, written as "50/s", "300/m" or "10/h".
type Rate float64

// UnmarshalText parses a rate; it refuses negative and infinite rates.
func (r *Rate) UnmarshalText(text []byte) error {
	num, per, ok := strings.Cut(string(text), "/")
	seconds := map[string]float64{"s": 1, "m": 60, "h": 3600}[strings.TrimSpace(per)]
	v, err := strconv.ParseFloat(strings.TrimSpace(num), 64)
	switch {
	case !ok || seconds == 0 || err != nil || math.IsNaN(v) || math.IsInf(v, 0):
		return fmt.Errorf("%q is not a rate; write it as 50/s, 300/m or 10/h", text)
	case v < 0:
		return fmt.Errorf("%q is negative; a rate is 0/s or more", text)
	}
	*r = Rate(v / seconds)
	return nil
}

// MarshalText encodes the rate in the notation that UnmarshalText accepts.
func (r Rate) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

func (r Rate) String() string {
	return plain(float64(r)) + "/s"
}

// Bytes is a size, written as "512", "1KiB", "200MB".
type Bytes int64

var sizeUnits = map[string]float64{
	"": 1, "B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9,
	"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30,
}

// UnmarshalText parses a size; it refuses negative sizes.
func (b *Bytes) UnmarshalText(text []byte) error {
	v, ok := parseSize(string(text))
	if !ok {
		m := boundForm.FindStringSubmatch(strings.TrimSpace(string(text)))
		if m != nil && strings.HasPrefix(m[1], "-") {
			return fmt.Errorf("%q is negative; a size is 0 or more", text)
		}
		if m != nil && nearUnit(m[2]) != "" {
			return fmt.Errorf("%q is not a size; write %s", text, m[1]+nearUnit(m[2]))
		}
		return fmt.Errorf("%q is not a size; write it as 512, 1KiB or 200MB", text)
	}
	*b = Bytes(v)
	return nil
}

// MarshalText encodes the size in the notation that UnmarshalText accepts.
func (b Bytes) MarshalText() ([]byte, error) {
	for _, u := range []string{"GiB", "MiB", "KiB"} {
		if n := int64(sizeUnits[u]); b > 0 && int64(b)%n == 0 {
			return []byte(strconv.FormatInt(int64(b)/n, 10) + u), nil
		}
	}
	return []byte(strconv.FormatInt(int64(b), 10)), nil
}

// Roughly formats a size with three digits, in the largest unit that fits.
func (b Bytes) Roughly() string { return inUnits(float64(b)) }

// Unit is the unit of a value, such as the value of a gate.
type Unit string

// The units of values.
const (
	Seconds Unit = "seconds"
	Ratio   Unit = "ratio"
	Size    Unit = "bytes"
	Count   Unit = "count"
	PerHour Unit = "per hour"
	PerSec  Unit = "per second"
	Number  Unit = "" // a value of an expr gate, without a unit
)

// Example returns examples of bounds in this unit.
func (u Unit) Example() string {
	return map[Unit]string{
		Seconds: "1s or 250ms", Ratio: "5% or 0.05", Size: "200MB or 64MiB",
		Count: "0 or 12", PerHour: "1/h", PerSec: "50/s", Number: "0.5, 1s or 5%",
	}[u]
}

// Bound is a number with its text in the scenario, such as the `max` of a gate.
type Bound struct {
	Value float64
	// units are the possible units of the number: only seconds for "1s", but a count, a ratio or no unit for "5".
	units []Unit
	text  string
}

var boundForm = regexp.MustCompile(`^([-+]?[0-9]*\.?[0-9]+(?:[eE][-+]?[0-9]+)?)\s*([A-Za-zµ%/]*)$`)

// UnmarshalText parses a bound in any unit. Fits reports whether that unit is the expected one.
func (b *Bound) UnmarshalText(text []byte) error {
	s := string(text)
	b.text = s
	switch d, near, err := parseDuration(s); {
	case err == nil && s != "0":
		b.Value, b.units = d.Seconds(), []Unit{Seconds}
		return nil
	case near != "":
		return fmt.Errorf("%q is not a bound; write %s", text, near)
	}
	m := boundForm.FindStringSubmatch(s)
	if m == nil {
		return fmt.Errorf("%q is not a bound; write it as 1s, 5%%, 200MB, 1/h or a number", text)
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil || math.IsInf(v, 0) {
		return fmt.Errorf("%q is not a finite number; write it as 1s, 5%%, 200MB, 1/h or 12", text)
	}
	switch unit := m[2]; unit {
	case "":
		b.Value, b.units = v, []Unit{Count, Ratio}
		if v == 0 {
			b.units = []Unit{Count, Ratio, Seconds, Size, PerHour, PerSec}
		}
	case "%":
		b.Value, b.units = v/100, []Unit{Ratio}
	case "/h":
		b.Value, b.units = v, []Unit{PerHour}
	case "/s":
		b.Value, b.units = v, []Unit{PerSec}
	default:
		f, ok := sizeUnits[unit]
		near := nearDuration(s)
		if unit == "/m" || unit == "/min" {
			near = plain(v*60) + "/h"
		}
		if near == "" && nearUnit(unit) != "" {
			near = m[1] + nearUnit(unit)
		}
		switch {
		case !ok && near != "":
			return fmt.Errorf("%q has the unknown unit %q; write %s", text, unit, near)
		case !ok && longDuration.MatchString(s):
			return fmt.Errorf("%q is too long for a duration; write at most 2562047h", text)
		case !ok:
			return fmt.Errorf("%q has the unknown unit %q; write a bound as 1s, 5%%, 200MB, 1/h or a number", text, unit)
		}
		b.Value, b.units = v*f, []Unit{Size}
	}
	return nil
}

// MarshalText returns the bound's original text.
func (b Bound) MarshalText() ([]byte, error) { return []byte(b.text), nil }

func (b Bound) String() string { return b.text }

// Fits reports whether the bound can be a value in unit u.
func (b Bound) Fits(u Unit) bool {
	return u == Number || slices.Contains(b.units, u)
}

// nearUnit returns the size unit that a misspelled unit probably means, or "".
func nearUnit(unit string) string {
	for known := range sizeUnits {
		if known != "" && (strings.EqualFold(known, unit) || strings.HasSuffix(known, "iB") && strings.EqualFold(known, unit+"B")) {
			return known
		}
	}
	return map[string]string{"k": "kB", "M": "MB", "G": "GB"}[unit]
}

func parseSize(s string) (float64, bool) {
	m := boundForm.FindStringSubmatch(strings.TrimSpace(s))
	if m == nil {
		return 0, false
	}
	f, ok := sizeUnits[m[2]]
	v, err := strconv.ParseFloat(m[1], 64)
	if !ok || err != nil || v < 0 || v*f > math.MaxInt64/2 {
		return 0, false
	}
	return v * f, true
}

// inUnits formats a size in the largest unit that fits, with three digits.
func inUnits(bytes float64) string {
	for _, unit := range []string{"GiB", "MiB", "KiB"} {
		if n := bytes / sizeUnits[unit]; n >= 1 {
			return digits.Format(n, 3) + unit
		}
	}
	return plain(bytes) + " bytes"
}
