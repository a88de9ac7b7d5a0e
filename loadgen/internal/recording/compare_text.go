package recording

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/stormglass/stormglass/internal/terminal"
)

// maxGroups is the maximum number of groups that WriteText prints.
const maxGroups = 20

// WriteText writes the comparison as text, with the maxGroups groups that differ most.
func (c Comparison) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "requests    %d in the recording, %d in its replay (and %d other requests)\n", c.Requests, c.Replayed, c.Setup)
	fmt.Fprintf(&b, "rate        differs by at most %.2f%% for each verb, resource and actor\n", 100*c.RateError)
	fmt.Fprintf(&b, "dispersion  %.3g in the recording, %.3g in its replay, a difference of %.2f%%\n\n", c.Dispersion, c.ReplayedDispersion, 100*c.DispersionError)
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "difference\ttrace\treplay\tverb\tresource\tactor")
	for i, g := range c.Groups {
		if i == maxGroups {
			break
		}
		fmt.Fprintf(table, "%.2f%%\t%d\t%d\t%s\t%s\t%s\n", 100*g.Error, g.Requests, g.Replayed, g.Verb, terminal.Clean(g.Resource), terminal.Clean(g.Actor))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if more := len(c.Groups) - maxGroups; more > 0 {
		fmt.Fprintf(&b, "and %d more groups with smaller differences\n", more)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
