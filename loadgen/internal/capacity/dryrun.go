package capacity

import (
	"context"
	"fmt"
	"io"

	"github.com/stormglass/stormglass/loadgen/internal/cluster"
	"github.com/stormglass/stormglass/loadgen/internal/run"
)

// Preview describes a search before it starts: the number of trials, and one trial at the highest load.
type Preview struct {
	Field string `json:"field"`
	// Trials is the maximum number of trials, excluding the trials that confirm the result.
	Trials int             `json:"trials"`
	Load   string          `json:"load"`
	Trial  cluster.Preview `json:"trial"`
}

// check checks the options of a trial with the lowest load and of a trial with the highest load.
func (s *session) check(ctx context.Context) error {
	for _, load := range []float64{s.c.From, s.c.To} {
		of, err := s.at(load)
		if err != nil {
			return err
		}
		if s.o.Build != nil { // not built yet
			of.ControlPlane = ""
		}
		if err := run.Check(ctx, of); err != nil {
			return fmt.Errorf("%s=%s: %w", s.c.Field, s.text(load), err)
		}
	}
	return nil
}

// at returns the options of a trial with a given load, except the seed and the directory.
func (s *session) at(load float64) (run.Options, error) {
	o := s.o.Options
	var err error
	o.Scenario, err = s.with(load)
	return o, err
}

// DryRun performs the checks of Run and returns a preview of the search, with a trial at the highest load.
func DryRun(ctx context.Context, o RunOptions) (p Preview, err error) {
	s := onPlanes(o)
	if err := s.plan(); err != nil {
		return p, err
	}
	p = Preview{Field: s.c.Field, Trials: o.Most, Load: s.text(s.c.To)}
	of, err := s.at(s.c.To)
	if err != nil {
		return p, err
	}
	if p.Trial, err = run.DryRun(ctx, of); err != nil {
		return p, fmt.Errorf("%s=%s: %w", p.Field, p.Load, err)
	}
	return p, nil
}

// WriteText writes the preview as text.
func (p Preview) WriteText(to io.Writer) error {
	fmt.Fprintf(to, "at most %d trials, plus the trials that confirm the result. The trial with the highest load, %s=%s, would be:\n\n", p.Trials, p.Field, p.Load)
	return p.Trial.WriteText(to)
}
