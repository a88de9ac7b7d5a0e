package chart

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/stormglass/stormglass/internal/digits"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// None is the text that is shown for a missing value.
const None = "–"

// UnitCores is a unit that only charts use, not gates.
const UnitCores scenario.Unit = "cores"

// Format formats v in a unit of result.Gate for readers: "1.24 s", "340 ms", "5,000", "12%", "310 MB", "50/s". It keeps
// three significant digits, because more are noise in a load test; whole numbers are exact.
func Format(u scenario.Unit, v float64) string { return FormatDigits(u, v, 3) }

// FormatDigits is Format with n significant digits.
func FormatDigits(u scenario.Unit, v float64, n int) string {
	if math.IsNaN(v) {
		return None
	}
	if math.IsInf(v, 0) {
		return strings.Replace(fmt.Sprint(v), "Inf", "∞", 1)
	}
	switch u {
	case scenario.Seconds:
		if v != 0 && math.Abs(v) < resolution {
			return "under 1 µs"
		}
		return Seconds(v, n)
	case scenario.Ratio:
		return Number(v*100, n) + "%"
	case scenario.Size:
		return Scaled(v, n, []string{" B", " kB", " MB", " GB", " TB"})
	case scenario.PerHour:
		return Number(v, n) + "/h"
	case scenario.PerSec:
		return Number(v, n) + "/s"
	}
	return Number(v, n)
}

// resolution is the shortest time, in seconds, that the histograms distinguish from zero.
const resolution = 1e-6

// Seconds formats a duration in seconds: "85 µs", "340 ms", "1.24 s", "2m 05s", "5m", "1h 02m".
func Seconds(v float64, n int) string {
	a := math.Abs(v)
	switch {
	case a == 0:
		return "0 s"
	case a < 999.5e-6:
		return Number(v*1e6, n) + " µs"
	case a < 999.5e-3:
		return Number(v*1e3, n) + " ms"
	case a < 59.95:
		return Number(v, n) + " s"
	}
	d := time.Duration(math.Round(a)) * time.Second
	sign := minus(v < 0)
	switch {
	case d%time.Hour == 0:
		return fmt.Sprintf("%s%dh", sign, d/time.Hour)
	case d%time.Minute == 0 && d < time.Hour:
		return fmt.Sprintf("%s%dm", sign, d/time.Minute)
	case d < time.Hour:
		return fmt.Sprintf("%s%dm %02ds", sign, d/time.Minute, d%time.Minute/time.Second)
	}
	return fmt.Sprintf("%s%dh %02dm", sign, d/time.Hour, d%time.Hour/time.Minute)
}

func minus(below bool) string {
	if below {
		return "-"
	}
	return ""
}

// Scaled formats v with one of the units, so that the number is below 1,000 if possible. Each unit is 1,000 times the
// previous one, like sizes in a scenario file.
func Scaled(v float64, n int, units []string) string {
	i := 0
	for ; math.Abs(v) >= 999.5 && i < len(units)-1; i++ {
		v /= 1000
	}
	return Number(v, n) + units[i]
}

// Number formats v with n significant digits and commas between thousands. It keeps all digits before the point.
func Number(v float64, n int) string { return Group(digits.Format(v, n)) }

// Count formats a whole number: "5,000".
func Count[N int | int64](n N) string { return Group(strconv.FormatInt(int64(n), 10)) }

// Group puts commas between the thousands of a number.
func Group(s string) string {
	whole, frac, dot := strings.Cut(s, ".")
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if dot {
		whole += "." + frac
	}
	return sign + whole
}

// Clock formats seconds since the start of the run as "2:05" or "1:02:05".
func Clock(s float64) string {
	t := int(math.Round(math.Abs(s)))
	sign := minus(s < -0.5)
	if t < 3600 {
		return fmt.Sprintf("%s%d:%02d", sign, t/60, t%60)
	}
	return fmt.Sprintf("%s%d:%02d:%02d", sign, t/3600, t/60%60, t%60)
}

// Grafana formats a value in one of Grafana's units, with three significant digits.
func Grafana(unit string, v float64) string {
	switch {
	case math.IsNaN(v):
		return None
	case math.IsInf(v, 1):
		return "∞"
	case math.IsInf(v, -1):
		return "-∞"
	}
	switch unit {
	case "s":
		return grafanaSeconds(v)
	case "percentunit":
		return three(100*v) + "%"
	case "bytes":
		return grafanaScaled(v, 1024, " B", " KiB", " MiB", " GiB", " TiB")
	case "decbytes":
		return grafanaScaled(v, 1000, " B", " kB", " MB", " GB", " TB")
	case "Bps":
		return grafanaScaled(v, 1000, " B/s", " kB/s", " MB/s", " GB/s")
	case "reqps", "ops", "cps":
		return grafanaScaled(v, 1000, "", " k", " M") + "/s"
	case "bool_yes_no":
		return choose(v, "yes", "no")
	case "bool_on_off":
		return choose(v, "on", "off")
	}
	return grafanaScaled(v, 1000, "", " k", " M", " G")
}

func choose(v float64, yes, no string) string {
	if v != 0 {
		return yes
	}
	return no
}

func grafanaSeconds(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0 s"
	case a < 0.9995e-3: // a value that would round to 1000 µs is shown as 1 ms
		return three(v*1e6) + " µs"
	case a < 0.9995:
		return three(v*1e3) + " ms"
	case a < 120:
		return three(v) + " s"
	}
	return three(v/60) + " min"
}

func grafanaScaled(v, by float64, units ...string) string {
	i := 0
	for ; math.Abs(v) >= 0.9995*by && i < len(units)-1; i++ {
		v /= by
	}
	return three(v) + units[i]
}

// three formats v with three significant digits, but keeps all digits before the point. Below 0.001 it returns
// "<0.001".
func three(v float64) string {
	switch a := math.Abs(v); {
	case a == 0:
		return "0"
	case a < 0.001:
		return "<0.001"
	}
	decimals := min(max(2-int(math.Floor(math.Log10(math.Abs(v)))), 0), 5)
	s := strconv.FormatFloat(v, 'f', decimals, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}
