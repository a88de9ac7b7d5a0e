package diagnosis

import (
	"context"
	"fmt"

	"github.com/stormglass/stormglass/loadgen/result"
)

// machineUse compares the comparison period with the diagnosed time: how much all programs, other programs and the
// hypervisor used the generator's machine. It returns nil if this was not recorded, for example because the generator did not run.
func machineUse(ctx context.Context, source Source, o Options) (*result.MachineUse, error) {
	m := &result.MachineUse{}
	_, processors, err := means(ctx, source, o, `max(stormglass_machine_processors)`)
	if err != nil || processors == nil {
		return nil, err
	}
	m.Processors = *processors
	for _, f := range []struct {
		expr string
		set  func(result.Compared)
	}{
		{`sum(rate(stormglass_machine_busy_seconds_total[$range]))`, func(c result.Compared) { m.Used = &c }},
		{known.Parts["others"], func(c result.Compared) { m.Others = c }},
		{`sum(rate(stormglass_machine_steal_seconds_total[$range]))`, func(c result.Compared) { m.Steal = c }},
		{`sum(rate(stormglass_machine_memory_wait_seconds_total[$range]))`, func(c result.Compared) { m.MemoryWait = &c }},
		{`sum(rate(stormglass_machine_io_wait_seconds_total[$range]))`, func(c result.Compared) { m.DiskWait = &c }},
	} {
		calm, under, err := means(ctx, source, o, f.expr)
		if err != nil {
			return nil, err
		}
		if under != nil {
			f.set(result.Compared{Calm: calm, Under: *under})
		}
	}
	return m, nil
}

// means returns the mean of an expression over the comparison period and over the diagnosed time. A mean is nil if the
// expression has no value in that time.
func means(ctx context.Context, source Source, o Options, expr string) (calm, under *float64, err error) {
	all := (&signal{Expr: expandParts(known.Parts, expr)}).query(o.window())
	for _, s := range []struct {
		span result.Span
		into **float64
	}{{o.Calm, &calm}, {o.Under, &under}} {
		if !s.span.To.After(s.span.From) {
			continue
		}
		found, err := source.Range(ctx, all, s.span.From, s.span.To, o.Step)
		if err != nil {
			return nil, nil, fmt.Errorf("query the use of the machine: %w", err)
		}
		sum, n := 0.0, 0
		for _, one := range found {
			for _, p := range one.Points {
				if finite(p.V) {
					sum, n = sum+p.V, n+1
				}
			}
		}
		if n > 0 {
			*s.into = new(sum / float64(n))
		}
	}
	return calm, under, nil
}
