package alerts

import (
	"reflect"
	"testing"
)

// Records returns the same recording rules as Load, in the same order.
func TestRecordsAreThoseOfLoad(t *testing.T) {
	loaded, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	records, err := Records()
	if err != nil {
		t.Fatal(err)
	}
	type rule struct {
		file, group, record, expr string
		labels                    map[string]string
		interval                  any
	}
	list := func(groups []Group) (all []rule) {
		for _, g := range groups {
			for _, r := range g.Rules {
				if r.Record != "" {
					all = append(all, rule{g.File, g.Name, r.Record, r.Expr, r.Labels, g.Interval})
				}
			}
		}
		return all
	}
	if got, want := list(records), list(loaded); len(got) == 0 || !reflect.DeepEqual(got, want) {
		t.Errorf("%d records, want %d: %+v", len(got), len(want), got)
	}
}
