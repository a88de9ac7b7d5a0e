package ab

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/stormglass/stormglass/loadgen/internal/machine"
	"github.com/stormglass/stormglass/loadgen/internal/spans"
	"github.com/stormglass/stormglass/loadgen/result"
)

// memberDir returns the directory of a run within the directory of the comparison, such as a/03 or b/03.
func memberDir(side string, pair int) string {
	return filepath.Join(strings.ToLower(side), fmt.Sprintf("%02d", pair))
}

// grown returns the trace spans that take more time in B's runs than in A's runs. dir is the directory of the
// comparison. grown ignores runs whose result it cannot read.
func grown(dir string, pairs []result.Pair) []result.SpanGrowth {
	var a, b []*result.Traces
	read := func(all *[]*result.Traces, m result.Member) {
		var r result.Result
		if err := result.ReadJSON(filepath.Join(dir, m.Dir), result.ResultFile, &r); m.Dir != "" && err == nil {
			*all = append(*all, r.Traces)
		}
	}
	for _, p := range pairs {
		read(&a, p.A)
		read(&b, p.B)
	}
	return spans.Grown(a, b)
}

// memberOf returns the part of a run's result that a comparison needs.
func memberOf(dir string, res result.Result) result.Member {
	m := result.Member{Dir: dir, Verdict: res.Verdict, Values: map[string]float64{}, Unfit: res.Measurements.Generator.Saturated, Versions: res.Run.Versions}
	m.Ungated = len(res.Gates) == 0 && res.Verdict == result.NoData && len(res.Reasons) == 1 // the missing gates are the only reason
	for _, f := range res.Figures {
		if f.Value == nil {
			continue
		}
		m.Values[f.Name] = *f.Value
		if f.AtLeast {
			m.AtLeast = append(m.AtLeast, f.Name)
		}
	}
	m.Machine, m.Seconds = machine.Sum(res.Measurements.Phases)
	m.CPUs = res.Run.Host.CPUs
	return m
}

// thrown returns the reason why a pair is discarded, or "" if the pair counts. The reason is always the work of other
// programs or a saturated generator, never the value of a compared metric.
func thrown(bounds result.Throw, p result.Pair) string {
	for _, side := range []struct {
		name string
		m    result.Member
	}{{"A", p.A}, {"B", p.B}} {
		if why := unfit(bounds, side.m); why != "" {
			return side.name + ": " + why
		}
	}
	return ""
}

// unfit returns the reason why the results of a run cannot be compared, or "" if they can.
func unfit(bounds result.Throw, m result.Member) string {
	if len(m.Unfit) > 0 {
		return m.Unfit[0]
	}
	facts, known := machine.Of(m.Machine, m.Seconds, m.CPUs, true)
	if !known {
		return ""
	}
	for _, b := range []struct {
		what         string
		share, bound float64
	}{
		{"of the CPU time was taken by the hypervisor", facts.StealShare(), bounds.Steal},
		{"of the CPU time was used by other processes", facts.OtherShare(), bounds.Other},
		{"of the time, some process waited for a disk", valueOr(facts.IO), bounds.IO},
		{"of the time, some process waited for memory", valueOr(facts.Memory), machine.Memory},
	} {
		if b.share > b.bound {
			return fmt.Sprintf("%.1f%% %s (bound %.1f%%)", 100*b.share, b.what, 100*b.bound)
		}
	}
	return ""
}

func valueOr(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}

// unseen returns a note on the --discard flags that had no effect, or "". A flag has no effect if the machine does not
// report the quantity that the flag limits.
func unseen(pairs []result.Pair) string {
	for _, p := range pairs {
		switch m := p.B.Machine; {
		case m == nil:
			return "other load on the machine could not be measured, so --discard-steal, --discard-other and --discard-io had no effect"
		case m.IOWaitSeconds == nil:
			return "the time spent waiting for a disk (PSI) could not be measured, so --discard-io had no effect"
		}
	}
	return ""
}
