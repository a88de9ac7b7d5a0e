package site

import (
	"fmt"
	"net/http"
	"slices"

	"github.com/stormglass/stormglass/loadgen/internal/runs"
)

// mostOver is the maximum number of runs over each other.
const mostOver = 6

// selected returns the entries that a request names, or the reason why they cannot be shown over each other.
func selected(s runs.Snapshot, r *http.Request) (all []*runs.Entry, why string) {
	names := r.URL.Query()["run"]
	if n := len(names); n < 2 || n > mostOver {
		return nil, fmt.Sprintf("%s selected. Select two to %d runs in the list.", count(n, "run"), mostOver)
	}
	for _, name := range names {
		e := s.Find(name)
		switch {
		case e == nil || e.Kind != runs.Run || len(e.Values) == 0:
			return nil, "A selected run is not in the folder, or was not judged."
		case slices.Contains(all, e):
			return nil, "The same run is selected twice."
		}
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(a, b *runs.Entry) int { return a.Started.Compare(b.Started) })
	return all, ""
}

func (s *Server) serveComparison(w http.ResponseWriter, r *http.Request) {
	now, _, _ := s.state()
	_, why := selected(now, r)
	notFound(w, why)
}
