package ab

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/run"
)

// Preview describes the runs of a comparison before they start.
type Preview struct {
	// Pairs is the maximum number of pairs that count. It excludes the warm-up pair and the discarded pairs, which are
	// repeated.
	Pairs int `json:"pairs"`
	// A and B describe one run of each side. A is nil if side A is a baseline.
	A *cluster.Preview `json:"a,omitempty"`
	B *cluster.Preview `json:"b"`
}

// DryRun performs the checks of Run and returns a preview of its runs.
func DryRun(ctx context.Context, o Options) (p Preview, err error) {
	s := session{o: o}
	if err := s.plan(); err != nil {
		return p, err
	}
	p.Pairs = o.Plan.Most()
	for _, side := range []struct {
		flag string
		Side
		into **cluster.Preview
	}{{"--a", o.A, &p.A}, {"--b", o.B, &p.B}} {
		if side.Baseline != "" {
			continue
		}
		of, err := run.DryRun(ctx, s.of(side.Side))
		if err != nil {
			return p, fmt.Errorf("%s: %w", side.flag, err)
		}
		*side.into = &of
	}
	return p, nil
}

// WriteText writes the preview as text.
func (p Preview) WriteText(to io.Writer) error {
	runs, each := 2*(p.Pairs+1), "A and B in each, and a warm-up pair"
	if p.A == nil {
		runs, each = p.Pairs+1, "B alone, and one warm-up run"
	}
	fmt.Fprintf(to, "at most %d pairs, %d runs: %s. Discarded pairs are repeated\n", p.Pairs, runs, each)
	for _, side := range []struct {
		name string
		of   *cluster.Preview
	}{{"A", p.A}, {"B", p.B}} {
		if side.of == nil {
			continue
		}
		fmt.Fprintf(to, "\n%s: ", side.name)
		if err := side.of.WriteText(to); err != nil {
			return err
		}
	}
	return nil
}

// check checks the options of both sides before the first run.
func (s *session) check(ctx context.Context) error {
	for _, side := range []struct {
		flag string
		Side
	}{{"--a", s.o.A}, {"--b", s.o.B}} {
		if side.Baseline != "" {
			continue
		}
		o := s.of(side.Side)
		if side.Revision != "" { // not built yet
			o.ControlPlane = s.o.ControlPlane
		}
		if err := run.Check(ctx, o); err != nil {
			return fmt.Errorf("%s: %w", side.flag, err)
		}
	}
	return nil
}

// of returns the options for the runs of a side. It does not set the seed and the directory; the caller does.
func (s *session) of(side Side) run.Options {
	o := s.o.Options
	o.Scenario, o.Overrides, o.ControlPlane = side.Scenario, side.Set, cmp.Or(side.ControlPlane, o.ControlPlane)
	return o
}
