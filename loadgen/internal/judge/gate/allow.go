package gate

import (
	"errors"
	"fmt"

	"github.com/stormglass/stormglass/internal/strictyaml"
)

// AllowNoData sets that missing data of the named gates is ignored. A name is the name of a gate, or of the alert
// that a gate is about. AllowNoData fails if a name matches no gate.
func AllowNoData(gates []Compiled, names []string) error {
	var errs []error
	for _, name := range names {
		found := false
		var known []string
		for i := range gates {
			g := &gates[i]
			if g.Name == name || g.Alert == name {
				g.noDataAllowed, found = true, true
			}
			known = append(known, g.Name)
			if g.Alert != "" {
				known = append(known, g.Alert)
			}
		}
		if !found {
			errs = append(errs, fmt.Errorf("--allow-no-data %q: no rule or gate of that name is judged (%s)", name, strictyaml.Hint(name, known, "it takes the names of alerts and gates in --rules")))
		}
	}
	return errors.Join(errs...)
}
