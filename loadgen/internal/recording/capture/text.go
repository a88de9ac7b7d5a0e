package capture

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/stormglass/stormglass/internal/digits"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
)

// maxRows is the maximum number of rows in a table. One more row contains the sum of the remaining groups.
const maxRows = 10

// WriteText writes a recording as text for a terminal.
func WriteText(to io.Writer, r *Result) error {
	h, s := &r.Header, &r.Summary
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s of %s in %s, %s per second, dispersion %s\n", r.Out,
		digits.Count(s.Requests, "request"), digits.Count(int64(len(h.Actors)), "actor"), s.Length.D().Round(time.Millisecond), digits.Format(s.Rate, 4), digits.Format(s.Dispersion, 3))
	if n := s.Watches; n.Count > 0 {
		fmt.Fprintf(&b, "%s, open for %s (p50), %s (p99), %s (longest)\n", watches(n.Count), n.P50.D(), n.P99.D(), n.Max.D())
	}
	if len(h.Dropped) > 0 {
		fmt.Fprintf(&b, "left out: %s\n", dropped(h.Dropped, s.Requests))
	}
	for _, note := range h.Notes {
		fmt.Fprintln(&b, "note: "+terminal.Clean(note))
	}
	writeSnapshot(&b, h.Snapshot)
	table(&b, "verb", s.ByVerb(), func(verb string) string { return verb })
	table(&b, "resource", s.ByResource(), func(resource string) string { return resource })
	table(&b, "actor", s.ByActor(), func(i int) string { return h.Actors[i].String() })
	_, err := io.WriteString(to, b.String())
	return err
}

// dropped describes how many requests were excluded for each reason, in numbers and percent. kept holds numbers of
// requests that were kept.
func dropped(reasons map[string]int64, kept ...int64) string {
	total := int64(0)
	for _, n := range reasons {
		total += n
	}
	all := total
	for _, n := range kept {
		all += n
	}
	names := slices.SortedFunc(maps.Keys(reasons), func(a, b string) int {
		return cmp.Or(cmp.Compare(reasons[b], reasons[a]), cmp.Compare(a, b))
	})
	var parts []string
	for _, name := range names {
		parts = append(parts, fmt.Sprintf("%s %d (%s%%)", name, reasons[name], digits.Format(100*float64(reasons[name])/float64(all), 3)))
	}
	return fmt.Sprintf("%d of %s: %s", total, digits.Count(all, "request"), strings.Join(parts, ", "))
}

func table[K cmp.Ordered](to io.Writer, title string, rows []recording.Share[K], name func(K) string) {
	fmt.Fprintln(to)
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\trequests\tper second\n", title)
	for _, row := range rows[:min(maxRows, len(rows))] {
		fmt.Fprintf(w, "%s\t%d\t%s\n", terminal.Clean(name(row.Of)), row.Requests, digits.Format(row.Rate, 4))
	}
	if len(rows) > maxRows {
		var n int64
		var rate float64
		for _, row := range rows[maxRows:] {
			n, rate = n+row.Requests, rate+row.Rate
		}
		fmt.Fprintf(w, "%d more\t%d\t%s\n", len(rows)-maxRows, n, digits.Format(rate, 4))
	}
	_ = w.Flush() // cannot fail: it writes to memory
}

func watches(n int64) string {
	if n == 1 {
		return "1 watch"
	}
	return fmt.Sprintf("%d watches", n)
}

func writeSnapshot(to io.Writer, s *recording.Snapshot) {
	if s == nil {
		return
	}
	fmt.Fprintf(to, "the cluster has %s, with %d pods on the median node and %d on the node with the most pods\n", digits.Count(s.Nodes, "node"), s.PodsPerNode.P50, s.PodsPerNode.Max)
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\nresource\tobjects\tnamespaces\tmost in one\tbytes p50\tbytes p99")
	for _, r := range s.Resources {
		name := schema.GroupResource{Group: r.Group, Resource: r.Resource}
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%d\n", name, r.Objects, r.Namespaces, r.PerNamespace.Max, r.Bytes.P50, r.Bytes.P99)
	}
	_ = w.Flush() // cannot fail: it writes to memory
}
