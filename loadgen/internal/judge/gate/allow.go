package gate

import (
	"errors"
	"fmt"

	"github.com/stormglass/stormglass/internal/strictyaml"
)

// AllowNoData makes the verdict ignore missing data of the named gates. A name is the name of a gate or the name of its
// alert. AllowNoData fails if a name matches no gate.
func AllowNoData(gates []Compiled, names []string) error {
	var errs []error
	for _, name := range names {
		found := false
		var known []string
		for i := range gates {
			g := &gates[i]
			if g.informs {
				continue
			}
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
