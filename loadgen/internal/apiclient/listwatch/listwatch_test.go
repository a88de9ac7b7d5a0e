package listwatch

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
)

func TestMachineDecidesHowAWatchGoesOn(t *testing.T) {
	lost := errors.New("connection lost")
	const first, second = 800 * time.Millisecond, 1600 * time.Millisecond
	for name, c := range map[string]struct {
		machine Machine
		end     End
		verdict Verdict
		next    Question
		wait    time.Duration
	}{
		"a list":                      {Machine{Next: List}, End{}, Listed, Watch, 0},
		"a list that is too old":      {Machine{Next: List}, End{Err: &Refusal{Status: 410}}, Failed, FreshList, first},
		"a list from the future":      {Machine{Next: List}, End{Err: &Refusal{Status: 504}}, Failed, FreshList, first},
		"a refused list":              {Machine{Next: FreshList}, End{Err: &Refusal{429, 5 * time.Second}}, Failed, FreshList, 5 * time.Second},
		"an end in order":             {Machine{}, End{Up: true, Lived: TooShort}, Resumed, Watch, 0},
		"a short watch with events":   {Machine{}, End{Up: true, Events: 1}, Resumed, Watch, 0},
		"a short watch":               {Machine{}, End{Up: true}, Failed, Watch, first},
		"a lost watch":                {Machine{}, End{Up: true, Events: 1, Err: lost}, Resumed, Watch, 0},
		"a lost watch of a node":      {Machine{WaitLost: true}, End{Up: true, Events: 1, Err: lost}, Failed, Watch, first},
		"a malformed stream":          {Machine{}, End{Up: true, Events: 1, Err: ErrMalformed}, Failed, Watch, first},
		"a refused connection":        {Machine{}, End{Err: lost}, Failed, Watch, first},
		"a connection that goes away": {Machine{}, End{Err: h2conn.ErrGoAway}, Failed, Watch, 0},
		"the second of them":          {Machine{failures: 1}, End{Err: h2conn.ErrGoAway}, Failed, Watch, second},
		"an expired version":          {Machine{State: List}, End{Up: true, Err: &Refusal{Status: 410}}, Expired, List, 0},
		"one of many":                 {Machine{State: List, WaitExpired: true}, End{Up: true, Err: &Refusal{Status: 410}}, Expired, List, first},
		"expired twice":               {Machine{State: List, failures: 1}, End{Err: &Refusal{Status: 410}}, Expired, List, second},
		"expired initial events":      {Machine{State: WatchList, Next: WatchList}, End{Up: true, Err: &Refusal{Status: 410}}, Expired, FreshList, 0},
		"a server without WatchList":  {Machine{State: WatchList, Next: WatchList}, End{Err: &Refusal{Status: 422}}, NoWatchList, List, 0},
		"initial events cut short":    {Machine{State: WatchList, Next: WatchList}, End{Up: true, Events: 1, Err: lost}, Resumed, WatchList, 0},
	} {
		m := c.machine
		m.Backoff = Backoff()
		if v, wait := m.Ended(c.end, 0); v != c.verdict || m.Next != c.next || wait != c.wait {
			t.Errorf("%s: verdict %d, next request %d after %v; want %d, %d after %v", name, v, m.Next, wait, c.verdict, c.next, c.wait)
		}
	}
}

func TestBackoffIsClientGos(t *testing.T) {
	for failures, want := range map[int]time.Duration{
		1: 800 * time.Millisecond, 2: 1600 * time.Millisecond, 6: 25600 * time.Millisecond, 7: 30 * time.Second, 1000: 30 * time.Second,
	} {
		if least, most := Backoff().Wait(failures, 0), Backoff().Wait(failures, 1); least != want || most != 2*want {
			t.Errorf("wait after %d failures is %v to %v, want %v to twice that", failures, least, most, want)
		}
	}
}

func TestQueriesAreAReflectors(t *testing.T) {
	const selector = "&labelSelector=a"
	for _, c := range []struct {
		ask     Question
		version uint64
		want    string
	}{
		{Watch, 7, "/p?watch=true&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=7" + selector},
		{WatchList, 0, "/p?watch=true&allowWatchBookmarks=true&timeoutSeconds=300&resourceVersion=&sendInitialEvents=true&resourceVersionMatch=NotOlderThan" + selector},
		{List, 0, "/p?resourceVersion=0" + selector},
		{FreshList, 7, "/p?labelSelector=a"},
	} {
		if got := string(AppendQuery([]byte("/p"), c.ask, c.version, ShortestWatch, selector)); got != c.want {
			t.Errorf("query of request %d is %s, want %s", c.ask, got, c.want)
		}
	}
	if got := string(AppendQuery([]byte("/p"), FreshList, 7, 0, "")); got != "/p" {
		t.Errorf("query of a list without selector is %s", got)
	}
}

func TestFramesAreCutAnywhere(t *testing.T) {
	events := []string{"a", strings.Repeat("long ", 100), "", "last"}
	for _, lines := range []bool{false, true} {
		var body []byte
		for _, e := range events {
			if lines {
				body = append(append(body, e...), '\n')
			} else {
				body = append(binary.BigEndian.AppendUint32(body, uint32(len(e))), e...)
			}
		}
		for size := 1; size <= len(body); size++ {
			f := Frames{Lines: lines}
			var got []string
			for piece := range slices.Chunk(body, size) {
				if err := f.Feed(piece, func(e []byte) error { got = append(got, string(e)); return nil }); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(got, events) || f.rest != nil {
				t.Fatalf("in pieces of %d bytes: events %q, rest %q", size, got, f.rest)
			}
		}
	}
}

func TestFramesRefuseEventsWithoutEnd(t *testing.T) {
	keep := func([]byte) error { return nil }
	if err := (&Frames{}).Feed([]byte{0xff, 0xff, 0xff, 0xff}, keep); !errors.Is(err, ErrMalformed) {
		t.Errorf("length of 4 GiB: error %v, want ErrMalformed", err)
	}
	f := Frames{Lines: true}
	var err error
	for range 2 {
		err = f.Feed(make([]byte, MaxEvent), keep)
	}
	if !errors.Is(err, ErrMalformed) {
		t.Errorf("line of 32 MiB: error %v, want ErrMalformed", err)
	}
	stop := errors.New("stop")
	if err := (&Frames{Lines: true}).Feed([]byte("\n"), func([]byte) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("Feed returned %v, want the error of the function", err)
	}
}
