package chart

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// Pictures and page have the same colours.
func TestPicturesHaveThePagesColours(t *testing.T) {
	css, err := os.ReadFile("../document/style.css")
	if err != nil {
		t.Fatal(err)
	}
	light, _, _ := strings.Cut(string(css), "@media")
	want := map[string]string{"ink": ink, "dim": dimInk, "grid": gridInk, "fail": faultInk, "event": eventInk}
	for i := range MaxSeries {
		want[fmt.Sprint("s", i)], _ = seriesInk(i)
	}
	for name, colour := range want {
		if !strings.Contains(light, "--"+name+": "+colour+";") {
			t.Errorf("--%s is not %s on the page", name, colour)
		}
	}
	for i := range MaxSeries {
		if colour, dash := seriesInk(i); dash != "" && !strings.Contains(string(css), fmt.Sprintf(".s%d { stroke: var(--s%d); stroke-dasharray: %s; }", i, i, dash)) {
			t.Errorf("line %d, %s, is not dashed %s on the page", i, colour, dash)
		}
	}
}
