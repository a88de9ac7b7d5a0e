package scenario

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/internal/strictyaml"
)

// parseVariants reads the scenario once more for each of its variants, with the
// variant's fields laid over it. An error names the variant.
func (s *Scenario) parseVariants(file string, data []byte, overrides []string) error {
	var errs []error
	for i, v := range s.Variants {
		read, err := parse(&Scenario{Variant: v.Name}, file, data, overrides, func(doc *strictyaml.Document) error {
			return doc.Overlay(fmt.Sprintf("variants[%d].set", i), "with variant "+v.Name)
		})
		if err != nil {
			errs = append(errs, err)
			continue
		}
		s.variants = append(s.variants, read)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	// A fault that only one variant has must not be what gives it links that the
	// others are without: they would be compared by their proxies.
	for _, from := range s.variants {
		if !from.linksOn {
			continue
		}
		for _, to := range append([]*Scenario{s}, s.variants...) {
			if to.needLinks("controlPlane.networkFaults") {
				to.linksOf = " as in variant " + from.Variant
			}
		}
	}
	return nil
}

// needLinks turns networkFaults on for what stands at a path, unless it was said what it is to be.
func (s *Scenario) needLinks(path string) bool {
	if s.ControlPlane.NetworkFaults != "" || s.ControlPlane.HasLinks() {
		return false
	}
	s.ControlPlane.NetworkFaults = control.NetworkFaultsOn
	s.linksOn, s.linksFor = true, path
	return true
}

func (s *Scenario) keepGates() {
	s.Gates = slices.DeleteFunc(s.Gates, func(g Gate) bool { return len(g.Variants) > 0 && !slices.Contains(g.Variants, s.Variant) })
	for i := range s.Gates {
		s.Gates[i].Variants = nil // the others are not known any more
	}
}

// AllVariants are the scenarios of all variants, in their order.
func (s *Scenario) AllVariants() []*Scenario { return s.variants }

// WithVariant is the scenario of one variant.
func (s *Scenario) WithVariant(name string) (*Scenario, error) {
	var known []string
	for _, v := range s.variants {
		if v.Variant == name {
			return v, nil
		}
		known = append(known, v.Variant)
	}
	hint := "it has none"
	if len(known) > 0 {
		hint = "it has " + strings.Join(known, ", ") + "; all runs them one after another"
	}
	if near := strictyaml.Suggest(name, known); near != "" {
		hint = fmt.Sprintf("did you mean %q? %s", near, hint)
	}
	return nil, fmt.Errorf("--variant %s: scenario %s has no such variant (%s)", name, s.Name, hint)
}

// Warnings say in a line each, with file, line and field, what works and is not
// wise, and what was turned on without being asked for.
func (s *Scenario) Warnings() []string {
	var all []string
	for _, p := range s.ControlPlane.Warnings() {
		all = append(all, s.Errorf("controlPlane."+p.Path, p.Hint, "%s", p.Msg).Error())
	}
	if s.linksOn {
		all = append(all, s.Errorf(s.linksFor, "written into the scenario, controlPlane.networkFaults: on is no surprise",
			"networkFaults is on%s, for links that can be cut: their proxies are a deviation from upstream", s.linksOf).Error())
	}
	all = append(all, s.unserved()...)
	all = append(all, s.sparse()...)
	return all
}

// Faults lists every fault with the path of each.
func (s *Scenario) Faults() []PlacedFault {
	var all []PlacedFault
	for i := range s.Phases {
		p := &s.Phases[i]
		for j := range p.Faults {
			all = append(all, PlacedFault{Fault: &p.Faults[j], Phase: p.Name, Path: fmt.Sprintf("phases[%d].faults[%d]", i, j)})
		}
	}
	return all
}
