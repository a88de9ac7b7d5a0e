package workers

import (
	"strings"
	"testing"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/plan"
)

// Check refuses loads that cannot be divided among the given number of workers. The error names the load's line.
func TestCheckRefusesTooManyWorkers(t *testing.T) {
	for name, c := range map[string]struct {
		count int
		loads string
		want  string
	}{
		"none":              {-1, `{kind: requests, verb: get, rate: 5/s}`, "--workers -1: must be between 1 and 256"},
		"too many":          {1000, `{kind: requests, verb: get, rate: 5/s}`, "must be between 1 and 256"},
		"few watches":       {4, `{kind: watches, name: crowd, count: 3, rate: 5/s}`, "load crowd has only 3 watches (count), which cannot be divided among 4 workers"},
		"few slots":         {4, `{kind: requests, name: r, verb: get, rate: 5/s, maxInFlight: 2}`, "load r has only 2 requests in flight (maxInFlight)"},
		"few objects":       {4, `{kind: requests, name: r, verb: update, rate: 5/s, objects: 3}`, "load r has only 3 objects (objects)"},
		"nothing to divide": {2, `{kind: history, rate: 5/s}`, "has no loads or nodes that can be divided among workers"},
		"enough":            {3, `{kind: watches, name: crowd, count: 3, rate: 5/s}`, ""},
		"reads of few":      {4, `{kind: requests, verb: get, rate: 5/s, objects: 1}`, ""},
	} {
		err := Check(Options{Count: c.count}, plan.Of(parse(t, "phases: [{name: p, for: 5s, load: ["+c.loads+"]}]")))
		switch {
		case c.want == "" && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.want != "" && (exitcode.Of(err) != exitcode.Usage || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n")):
			t.Errorf("%s: %v", name, err)
		}
	}
	s := parse(t, "background: [{kind: history, name: h, rate: 5/s}]\nphases: [{name: p, for: 5s, load: [{kind: requests, verb: get, rate: 5/s}]}]")
	if err := Check(Options{Count: 2}, plan.Of(s)); err != nil {
		t.Error(err)
	}
	if whole := Whole(plan.Of(s)); len(whole) != 1 || whole[0] != "h" {
		t.Errorf("Whole returned %v, want only h", whole)
	}
}
