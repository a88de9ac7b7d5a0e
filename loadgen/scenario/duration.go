package scenario

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// UnmarshalText parses a duration. Negative durations are errors.
func (d *Duration) UnmarshalText(text []byte) error {
	v, near, err := parseDuration(string(text))
	switch {
	case err == nil && v < 0:
		return fmt.Errorf("%q is negative; a duration is 0s or more", text)
	case err == nil:
		*d = Duration(v)
		return nil
	case near != "":
		return fmt.Errorf("%q is not a duration; write %s", text, near)
	}
	if v, err := strconv.ParseFloat(string(text), 64); err == nil && v >= 0 && v < 1e9 {
		n := plain(v)
		return fmt.Errorf("%q has no unit; write %ss, %sms or %sm", text, n, n, n)
	}
	if near := nearDuration(string(text)); near != "" {
		return fmt.Errorf("%q is not a duration; write %s", text, near)
	}
	if longDuration.Match(text) {
		return fmt.Errorf("%q is out of bounds; at most 24h", text)
	}
	return fmt.Errorf("%q is not a duration; write it as 30s, 2m or 250ms", text)
}

var (
	strictDuration  = regexp.MustCompile(`^-?[0-9]*\.?[0-9]+[a-zµμ]+(?:[0-9]+(?:\.[0-9]+)?[a-zµμ]+)*$`)
	durationUnit    = regexp.MustCompile(`[a-zµμ]+`)
	spelledDuration = regexp.MustCompile(`^([0-9]*\.?[0-9]+) ?(ms|milliseconds?|s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)$`)
	longDuration    = regexp.MustCompile(`^(?:[0-9]*\.?[0-9]+(?:ns|us|µs|ms|s|m|h))+$`)
	powerDuration   = regexp.MustCompile(`^([0-9]*\.?[0-9]+[eE][-+]?[0-9]+)(ns|us|µs|ms|s|m|h)$`)
	spreadForm      = regexp.MustCompile(`^(\S*[a-z])\s*(?:\.{1,3}|…|-|–|,|to)\s*([0-9]\S*)$`)
)

// parseDuration is a stricter time.ParseDuration. Each unit may appear once, in descending order. Only the first number
// may begin with a point, because Go reads 2s.20s as 2.2s. For invalid text, `near` is the probable spelling, or "".
func parseDuration(text string) (d time.Duration, near string, err error) {
	d, err = time.ParseDuration(text)
	if err != nil {
		return 0, powerOfTen(text), err
	}
	if !durationUnit.MatchString(text) { // Go accepts 0 without a unit, even with a sign
		if text != "0" {
			return 0, "", errors.New("no unit")
		}
		return d, "", nil
	}
	last := 24 * time.Hour
	ordered := strictDuration.MatchString(text)
	for _, unit := range durationUnit.FindAllString(text, -1) {
		size, _ := time.ParseDuration("1" + unit) // cannot fail: it was parsed above
		ordered = ordered && size < last
		last = size
	}
	if !ordered {
		return 0, Duration(d).String(), errors.New("not in order")
	}
	return d, "", nil
}

// powerOfTen returns the correct spelling of a duration that is written with an exponent. For other text it returns "".
func powerOfTen(text string) string {
	m := powerDuration.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	v, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return ""
	}
	d, err := time.ParseDuration(plain(v) + m[2])
	if err != nil || d == 0 {
		return ""
	}
	return Duration(d).String()
}

// nearDuration returns the correct spelling of a duration with a space or a spelled-out unit, or "".
func nearDuration(text string) string {
	m := spelledDuration.FindStringSubmatch(strings.ToLower(strings.TrimSpace(text)))
	if m == nil {
		return ""
	}
	unit := m[2][:1]
	if strings.HasPrefix(m[2], "ms") || strings.HasPrefix(m[2], "milli") {
		unit = "ms"
	}
	if unit == "d" {
		v, err := strconv.ParseFloat(m[1], 64)
		if err != nil || v > 1 {
			return "one of at most 24h"
		}
		return plain(v*24) + "h"
	}
	near := m[1] + unit
	if _, err := time.ParseDuration(near); err != nil || near == text {
		return ""
	}
	return near
}

// nearSpread returns the correct spelling of two durations with a wrong separator, or "".
func nearSpread(text string) string {
	m := spreadForm.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	median, _, err := parseDuration(m[1])
	if err != nil {
		return ""
	}
	p99, _, err := parseDuration(m[2])
	near := m[1] + ".." + m[2]
	if err != nil || p99 < median || near == text {
		return ""
	}
	return near
}
