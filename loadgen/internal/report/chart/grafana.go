package chart

import (
	"math"
	"strconv"
	"strings"
)

// Grafana writes a value in one of Grafana's units, with three significant digits.
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
		return digits(100*v) + "%"
	case "bytes":
		return grafanaScaled(v, 1024, " B", " KiB", " MiB", " GiB", " TiB")
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
	case a < 0.9995e-3: // what rounds to 1000 µs is a millisecond
		return digits(v*1e6) + " µs"
	case a < 0.9995:
		return digits(v*1e3) + " ms"
	case a < 120:
		return digits(v) + " s"
	}
	return digits(v/60) + " min"
}

func grafanaScaled(v, by float64, units ...string) string {
	i := 0
	for ; math.Abs(v) >= 0.9995*by && i < len(units)-1; i++ {
		v /= by
	}
	return digits(v) + units[i]
}

// digits keeps three that are significant, and all before the point. What is
// too small to matter is not spelled out.
func digits(v float64) string {
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
