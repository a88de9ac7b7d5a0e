package ab

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/result"
)

// resume continues the recorded comparison. It fails if the scenario, a side, the plan or the gated (deciding) metrics
// have changed since the first pairs.
func (s *session) resume() error {
	before := s.was
	same := sameSide(before.A, s.c.A) && sameSide(before.B, s.c.B) // if a git branch has moved, the user can give its old commit instead
	switch {
	case before.Scenario != s.c.Scenario:
		return exitcode.Usagef("--resume %s: the comparison in this directory used scenario %s (use the same scenario)", s.Dir.Path, before.Scenario)
	case !same && !(slices.Equal(before.A.Spec, s.c.A.Spec) && slices.Equal(before.B.Spec, s.c.B.Spec)):
		return exitcode.Usagef("--resume %s: the comparison in this directory compared %s with %s (use the same --a and --b)", s.Dir.Path, specText(before.A), specText(before.B))
	case !same:
		return exitcode.Usagef("--resume %s: the scenario, settings or revision of A or B have changed since the first pairs (use the same file and --set; specify a revision by its commit)", s.Dir.Path)
	case !reflect.DeepEqual(s.c.Plan, before.Plan):
		return exitcode.Usagef("--resume %s: --looks, --alpha and the other statistical settings cannot be changed after the first pairs (remove them)", s.Dir.Path)
	case len(s.o.Gated) > 0 && !slices.Equal(gatedOf(s.c.Figures), gatedOf(before.Figures)):
		return exitcode.Usagef("--resume %s: the metrics that decide the answer cannot be changed after the first pairs (remove --metric)", s.Dir.Path)
	case s.o.Labels != nil && !maps.Equal(s.o.Labels, before.Labels):
		return exitcode.Usagef("--resume %s: the labels cannot be changed after the first pairs (remove --label)", s.Dir.Path)
	}
	s.o.Labels = before.Labels
	if len(before.Pairs) > 0 {
		first := before.Pairs[0].B
		host := before.Host
		if host.CPUs == 0 { // the host was not recorded
			host.CPUs = first.CPUs
		}
		if err := s.CheckGenerator(host, first.Versions.Stormglass, "pairs", "comparison"); err != nil {
			return err
		}
	}
	for i, p := range before.Pairs { // run an interrupted pair again
		if p.A.Verdict == "" && s.c.A.Baseline == "" || p.B.Verdict == "" {
			before.Pairs = before.Pairs[:i]
			break
		}
	}
	before.Ended, before.Notes, before.Sets = time.Time{}, s.c.Notes, s.c.Sets
	s.c = before
	judgePairs(&s.c)
	return nil
}

// sameSide reports whether two sides have the same configuration. It does not compare the contents of their binaries.
func sameSide(a, b result.Side) bool {
	same := slices.Equal(a.Set, b.Set) && a.Variant == b.Variant && a.ControlPlane == b.ControlPlane && a.Revision == b.Revision && a.Baseline == b.Baseline
	return same && a.Digest == b.Digest
}

// gatedOf returns the sorted names of the gated metrics.
func gatedOf(figures []result.ABFigure) (names []string) {
	for _, f := range figures {
		if f.Gated {
			names = append(names, f.Name)
		}
	}
	slices.Sort(names)
	return names
}
