package promimport

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestMoments: how the archive shows a target's scrapes. Times are seconds; a
// moment is written "at<-of", or "lost" if it shows nothing.
func TestMoments(t *testing.T) {
	const every = 30 * time.Second
	scrapes := func(seconds ...float64) []tick {
		var all []tick
		for _, s := range seconds {
			all = append(all, tick{at: int64(s * 1000), up: true})
		}
		return all
	}
	at := func(stamped, seen int64) boundary { return boundary{at: stamped * 1000, seen: seen * 1000} }
	down := scrapes(90, 120, 150)
	down[1].up = false
	for name, c := range map[string]struct {
		ticks      []tick
		boundaries []boundary
		ahead      int64 // s
		want       string
	}{
		"a phase between two boundaries": {
			ticks: scrapes(60, 90, 120, 150, 180), boundaries: []boundary{at(95, 90), at(155, 150)},
			want: "60<-60 90<-90 95<-90 120<-120 150<-150 155<-150",
		},
		"their clock is ahead": {
			ticks: scrapes(1060, 1090, 1120, 1150), boundaries: []boundary{at(95, 1090), at(155, 1150)}, ahead: 1000,
			want: "60<-1060 90<-1090 95<-1090 120<-1120 150<-1150 155<-1150",
		},
		"their clock is ahead by a little less than was thought": {
			ticks: scrapes(60, 95.003, 120, 155.002), boundaries: []boundary{{at: 95_000, seen: 95_003}, {at: 155_000, seen: 155_002}},
			want: "60<-60 94.999<-95.003 95<-95.003 120<-120 154.999<-155.002 155<-155.002",
		},
		"a scrape was under way at a boundary": {
			ticks: scrapes(60, 90, 94.9, 120), boundaries: []boundary{at(95, 90), at(125, 120)},
			want: "60<-60 90<-90 95<-90 95.001<-94.9 120<-120 125<-120",
		},
		"the scrape that a boundary waited for never came": {
			ticks: scrapes(60, 90, 120), boundaries: []boundary{at(95, 90), at(210, 0)},
			want: "60<-60 90<-90 95<-90 120<-120 150 lost 180 lost 210 lost",
		},
		"it came and is there no more": {
			ticks: scrapes(60, 120), boundaries: []boundary{at(95, 90), at(125, 120)},
			want: "60<-60 95 lost 120<-120 125<-120",
		},
		"a gap within a phase": {
			ticks: scrapes(60, 90, 120, 240, 270), boundaries: []boundary{at(95, 90), at(275, 270)},
			want: "60<-60 90<-90 95<-90 120<-120 150 lost 180 lost 210 lost 240<-240 270<-270 275<-270",
		},
		"a scrape that failed": {
			ticks: down, boundaries: []boundary{at(95, 90), at(155, 150)},
			want: "90<-90 95<-90 120 down 150<-150 155<-150",
		},
		"a target that came during the phase": {
			ticks: scrapes(120, 150), boundaries: []boundary{at(95, 0), at(155, 150)},
			want: "95 lost 120<-120 150<-150 155<-150",
		},
		"nothing was scraped": {
			boundaries: []boundary{at(95, 0), at(255, 0)},
			want:       "95 lost 125 lost 155 lost 185 lost 215 lost 255 lost",
		},
		"no boundary, nothing to show": {ticks: scrapes(60, 90)},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, m := range moments(c.ticks, c.boundaries, c.ahead*1000, every) {
				at, of := float64(m.at)/1000, float64(m.of)/1000
				switch {
				case m.of == 0:
					got = append(got, fmt.Sprintf("%g lost", at))
				case !m.up:
					got = append(got, fmt.Sprintf("%g down", at))
				default:
					got = append(got, fmt.Sprintf("%g<-%g", at, of))
				}
			}
			if g := strings.Join(got, " "); g != c.want {
				t.Errorf("got  %s\nwant %s", g, c.want)
			}
		})
	}
}

// TestParts: a query requests at most a chunk of time, and a boundary stays with
// the scrape that it shows.
func TestParts(t *testing.T) {
	var all []moment
	for at := int64(1); at <= 3*chunk.Milliseconds(); at += 30_000 {
		all = append(all, moment{at: at, of: at, up: true}, moment{at: at + 1, of: at, up: true})
	}
	n := 0
	for _, part := range parts(all) {
		if length := part[len(part)-1].at - part[0].at; length > chunk.Milliseconds()+1 {
			t.Errorf("got a part of %d ms", length)
		}
		if n > 0 && part[0].of == all[n-1].of {
			t.Errorf("the scrape at %d belongs to two parts", part[0].of)
		}
		n += len(part)
	}
	if n != len(all) {
		t.Errorf("got %d of %d moments", n, len(all))
	}
	if parts(nil) != nil {
		t.Error("an empty range has parts")
	}
}
