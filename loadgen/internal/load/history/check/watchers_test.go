package check

import (
	"testing"

	"github.com/stormglass/stormglass/loadgen/result"
)

// three returns a history of three consecutive writes, with the versions 11 to 13.
func three() *told {
	return one().write(0, 1, 2, 10, 1, 11).write(0, 3, 4, 11, 2, 12).write(0, 5, 6, 12, 3, 13).final(13, 3)
}

func TestWatchers(t *testing.T) {
	listed := Entry{Kind: Listed, Version: 12}
	for name, c := range map[string]struct {
		entries []Entry
		want    []string
		hidden  int64
	}{
		"all":                       {entries: []Entry{event(11, 1), event(12, 2), event(13, 3)}},
		"missed in the middle":      {entries: []Entry{event(11, 1), event(13, 3)}, want: []string{result.MissedEvent}},
		"missed at the end":         {entries: []Entry{event(11, 1), event(12, 2)}, want: []string{result.MissedEvent}},
		"missed all":                {want: []string{result.MissedEvent}},
		"a bookmark is no event":    {entries: []Entry{{Kind: Bookmark, Version: 13}}, want: []string{result.MissedEvent}},
		"doubled":                   {entries: []Entry{event(11, 1), event(11, 1), event(12, 2), event(13, 3)}, want: []string{result.DoubledEvent}},
		"doubled later":             {entries: []Entry{event(11, 1), event(12, 2), event(13, 3), event(11, 1)}, want: []string{result.DoubledEvent}},
		"reordered":                 {entries: []Entry{event(12, 2), event(11, 1), event(13, 3)}, want: []string{result.ReorderedEvent}},
		"older than a bookmark":     {entries: []Entry{{Kind: Bookmark, Version: 12}, event(11, 1), event(12, 2), event(13, 3)}, want: []string{result.ReorderedEvent}},
		"relisted":                  {entries: []Entry{event(11, 1), listed, event(13, 3)}, hidden: 1},
		"relisted and missed":       {entries: []Entry{event(11, 1), listed}, hidden: 1, want: []string{result.MissedEvent}},
		"relisted, then told again": {entries: []Entry{event(11, 1), listed, event(11, 1), event(13, 3)}, hidden: 1, want: []string{result.DoubledEvent}},
		"an old list":               {entries: []Entry{event(11, 1), event(12, 2), event(13, 3), listed}, want: []string{result.BackwardsRead}},
	} {
		t.Run(name, func(t *testing.T) {
			r := expect(t, &three().watcher(c.entries...).History, c.want...)
			if r.Hidden != c.hidden {
				t.Errorf("%d changes are hidden, want %d", r.Hidden, c.hidden)
			}
		})
	}
}

// For a watcher that could not reconnect, changes after its last event are unjudged, so the history does not pass.
func TestWatcherGone(t *testing.T) {
	h := three().watcher(event(11, 1))
	h.Watchers[0].Live = false
	if r := expect(t, &h.History); len(r.Unjudged) != 1 {
		t.Errorf("unjudged: %q", r.Unjudged)
	}
	h = three().watcher(event(12, 2))
	h.Watchers[0].Live = false
	expect(t, &h.History, result.MissedEvent) // of version 11
}

// An event that one watcher received must reach all watchers, acknowledged or
// not.
func TestWatchersDeliverTheSameEvents(t *testing.T) {
	h := one().tried(0, 1, 2, 10, 1, Unknown).final(10, 0).watcher(event(11, 1)).watcher()
	expect(t, &h.History, result.MissedEvent, result.NotLinearizable)
}
