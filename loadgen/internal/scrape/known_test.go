package scrape

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// The line of a known series means what the parser reads from it, for any value.
func TestKnownSeriesReadAsTheParserReadsThem(t *testing.T) {
	for text, want := range map[string]float64{
		"7": 7, "1e3": 1000, "+Inf": math.Inf(1), "-0.5": -0.5, "0x10p1": math.NaN(), "1_0": math.NaN(), "five": math.NaN(), "": math.NaN(),
	} {
		s := newStub(t)
		b := newBench(t, Options{}, s.target(etcd))
		family := "# TYPE etcd_server_x gauge\n"
		s.says(100, family+`etcd_server_x{a="b c} 1"} 5`+"\n")
		b.scrape(0)
		s.says(100, family+fmt.Sprintf("etcd_server_x{a=\"b c} 1\"} %s\n", text))
		at := b.scrape(time.Second)
		a := b.archive()
		got := valueOf(t, a, "etcd_server_x", at)
		if up := valueOf(t, a, "up", at); got != want && !math.IsNaN(want) || (up == 0) != math.IsNaN(want) {
			t.Errorf("%q reads %v with up %v, want %v", text, got, up, want)
		}
	}
}
