package cli

import (
	"slices"
	"testing"
	"time"
)

func TestSignalCount(t *testing.T) {
	s := func(x float64) time.Duration { return time.Duration(x * float64(time.Second)) }
	for name, c := range map[string]struct {
		impatient bool
		at        []time.Duration
		want      []int
	}{
		"Ctrl-C, told twice":              {at: []time.Duration{0, s(0.01)}, want: []int{endInOrder, nothing}},
		"a CI: SIGINT, SIGTERM 1 s later": {at: []time.Duration{0, s(1)}, want: []int{endInOrder, hurryUp}},
		"a CI that sends more of them":    {at: []time.Duration{0, s(1), s(1.1), s(3), s(5.5)}, want: []int{endInOrder, hurryUp, nothing, nothing, nothing}},
		"a person hammers on Ctrl-C":      {at: []time.Duration{0, s(0.2), s(0.4), s(0.6), s(0.8)}, want: []int{endInOrder, nothing, nothing, hurryUp, nothing}},
		"the report hangs":                {at: []time.Duration{0, s(1), s(6.5)}, want: []int{endInOrder, hurryUp, endAtOnce}},
		"a command that has no report":    {impatient: true, at: []time.Duration{0, s(1)}, want: []int{endInOrder, endAtOnce}},
	} {
		var count signalCount
		var got []int
		for _, at := range c.at {
			got = append(got, count.next(time.UnixMilli(1_800_000_000_000).Add(at), !c.impatient))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
