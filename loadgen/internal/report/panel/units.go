package panel

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// none stands where there is no value.
const none = "–"

// text writes a value in one of Grafana's units, with three significant digits.
func text(unit string, v float64) string {
	switch {
	case math.IsNaN(v):
		return none
	case math.IsInf(v, 1):
		return "∞"
	case math.IsInf(v, -1):
		return "-∞"
	}
	switch unit {
	case "s":
		return seconds(v)
	case "percentunit":
		return digits(100*v) + "%"
	case "bytes":
		return scaled(v, 1024, " B", " KiB", " MiB", " GiB", " TiB")
	case "Bps":
		return scaled(v, 1000, " B/s", " kB/s", " MB/s", " GB/s")
	case "reqps", "ops", "cps":
		return scaled(v, 1000, "", " k", " M") + "/s"
	case "bool_yes_no":
		return choose(v, "yes", "no")
	case "bool_on_off":
		return choose(v, "on", "off")
	}
	return scaled(v, 1000, "", " k", " M", " G")
}

// threshold writes where a warning begins; of some rates any is too much.
func threshold(unit string, v float64) string {
	if v <= 0.001 && (unit == "reqps" || unit == "ops" || unit == "cps") {
		return "any"
	}
	return text(unit, v)
}

func choose(v float64, yes, no string) string {
	if v != 0 {
		return yes
	}
	return no
}

func seconds(v float64) string {
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

func scaled(v, by float64, units ...string) string {
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

// clock writes a time since the start of the run: "2:05" or "1:02:05".
func clock(d time.Duration) string {
	t := int(d.Round(time.Second) / time.Second)
	if t < 3600 {
		return fmt.Sprintf("%d:%02d", t/60, t%60)
	}
	return fmt.Sprintf("%d:%02d:%02d", t/3600, t/60%60, t%60)
}
