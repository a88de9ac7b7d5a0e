package scenario

import (
	"errors"

	"github.com/stormglass/stormglass/internal/strictyaml"
)

// gatesFile is gates in a file of their own.
type gatesFile struct {
	Gates []Gate `yaml:"gates"`
}

// WithGates returns the scenario with the gates of a file in place of its own, to
// judge a run by gates written after it. The file has one field,
// gates, written as in a scenario; file is its name in errors, which are joined,
// one line each. Of a variant's run, gates of other variants are left out.
func (s *Scenario) WithGates(file string, data []byte) (*Scenario, error) {
	doc, err := strictyaml.Parse(file, data)
	if err != nil {
		return nil, err
	}
	var f gatesFile
	if err := doc.Decode(&f); err != nil {
		return nil, err
	}
	if len(f.Gates) == 0 {
		return nil, doc.Errorf("gates", "write gates: as in a scenario", "there are no gates")
	}
	c := *s
	c.doc, c.Gates, c.Compare, c.recorded = doc, f.Gates, nil, false
	for i := range c.Gates {
		if len(c.Gates[i].Over) == 0 {
			c.Gates[i].Over = c.PhaseNames()
		}
	}
	v := &validator{s: &c}
	v.gates()
	if err := errors.Join(v.errs...); err != nil {
		return nil, err
	}
	if c.Variant != "" {
		c.keepGates()
	}
	return &c, nil
}
