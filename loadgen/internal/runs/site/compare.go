package site

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/internal/shell"
	"github.com/stormglass/stormglass/loadgen/internal/report"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/runs"
	"github.com/stormglass/stormglass/loadgen/result"
)

// maxOver is the maximum number of runs on a page that overlays runs.
const maxOver = 6

// selected returns the entries that a request names, or the reason why a page cannot overlay them.
func selected(s runs.Snapshot, r *http.Request) (all []*runs.Entry, why string) {
	names := r.URL.Query()["run"]
	if n := len(names); n < 2 || n > maxOver {
		return nil, fmt.Sprintf("Select two to %d runs in the list.", maxOver)
	}
	for _, name := range names {
		e := s.Find(name)
		switch {
		case e == nil || !e.Judged():
			return nil, "A selected run is not in the folder, or was not judged."
		case slices.Contains(all, e):
			return nil, "The same run is selected twice."
		}
		all = append(all, e)
	}
	slices.SortStableFunc(all, func(a, b *runs.Entry) int { return a.Started.Compare(b.Started) })
	return all, ""
}

// serveComparison sends the page that overlays the charts of several runs.
func (s *Server) serveComparison(w http.ResponseWriter, r *http.Request) {
	now, groups, _ := s.state()
	all, why := selected(now, r)
	if why != "" {
		notFound(w, why)
		return
	}
	var b bytes.Buffer
	if err := s.alone(r, func() error { return comparison(r.Context(), &b, all, groups, links{}) }); err != nil {
		http.Error(w, "the runs cannot be read: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // an error means that the browser has disconnected
}

// comparison writes the page that overlays the charts of several runs. `all` is sorted by the start of the runs.
func comparison(ctx context.Context, w io.Writer, all []*runs.Entry, groups []group, l links) (err error) {
	over := make([]report.Overlaid, len(all))
	names := shortNames(all)
	var notes []string
	for i, e := range all {
		over[i] = report.Overlaid{Name: names[i], Link: l.run(e)}
		if err := result.ReadJSON(e.Dir, result.ResultFile, &over[i].Result); err != nil {
			return fmt.Errorf("%s: %w", e.Path, err)
		}
		rec, err := rundir.OpenToShow(e.Dir)
		if err != nil { // readers of the page may be on other machines, so they get no path of this one
			notes = append(notes, names[i]+" has no charts: "+strings.ReplaceAll(err.Error(), e.Dir+": ", "")+".")
			continue
		}
		defer func() { _ = rec.Close() }() // it was only read
		over[i].Timeline, over[i].Interval, over[i].Downsampled = rec.Timeline, rec.Interval, rec.Downsampled != nil
		if rec.Archive != nil {
			over[i].Source = rec.Archive
		}
	}
	differs := runs.Differences(all)
	return errors.Join(ctx.Err(), report.OverlayHTML(ctx, w, over, differs, append(known(all, groups), notes...), command(all, differs, l), l.navigation(groupsWith(groups, all[0]))))
}

// shortNames returns a short name for each run: the name of its directory, or its path if two directories have the same
// name.
func shortNames(all []*runs.Entry) (names []string) {
	for _, e := range all {
		name := path.Base(e.Path)
		if slices.ContainsFunc(all, func(o *runs.Entry) bool { return o != e && path.Base(o.Path) == name }) {
			name = e.Path
		}
		names = append(names, name)
	}
	return names
}

// groupsWith returns groups with the group of an entry in front.
func groupsWith(groups []group, e *runs.Entry) []group {
	at := slices.IndexFunc(groups, func(g group) bool { return slices.Contains(g.all, e) })
	if at < 0 {
		return groups
	}
	return append([]group{groups[at]}, groups...)
}

// known returns sentences about the runs `all`: that their scenarios differ, or which changes the trend of their group
// has between the first and the last of these runs.
func known(all []*runs.Entry, groups []group) (sentences []string) {
	first, last := all[0], all[len(all)-1]
	if slices.ContainsFunc(all, func(e *runs.Entry) bool { return !e.Like(first) }) {
		sentences = append(sentences, "These runs have different scenarios or variants, so their values have different meanings.")
	}
	at := slices.IndexFunc(groups, func(g group) bool { return g.scenario == last.Scenario && g.variant == last.Variant })
	if at < 0 || !slices.Contains(groups[at].all, first) {
		return sentences
	}
	for _, c := range changesOf(groups[at], runs.Trend(groups[at].all)) {
		if c.after.Started.After(first.Started) && !c.after.Started.After(last.Started) {
			sentences = append(sentences, fmt.Sprintf("The trend over all runs has a change between these runs: %s, %s, from %s on (%s).", c.figure.Name, c.size(), c.after.Path, c.proof()))
		}
	}
	return sentences
}

// maxSpecs is the maximum number of scenario fields that the `loadgen ab` command of a page sets.
const maxSpecs = 5

// command returns the `loadgen ab` command that compares the last run (B) with the first one (A). The command begins
// with the scenario of one run, and sets the fields in which the scenario of the other run differs. command returns ""
// if the runs have different scenarios, or if they do not differ in anything that the command can set.
func command(all []*runs.Entry, differs []runs.Difference, l links) string {
	a, b := all[0], all[len(all)-1]
	if a.Scenario != b.Scenario {
		return ""
	}
	var onlyA, onlyB []string // flags that set the values of A (--a) or of B (--b) where both differ
	for _, d := range differs {
		field, ok := strings.CutPrefix(d.Name, runs.FieldPrefix)
		from, to := d.Values[0], d.Values[len(d.Values)-1]
		switch {
		case !ok || from == to:
			continue
		case from != "" && len(onlyA) < 2*maxSpecs:
			onlyA = append(onlyA, "--a", shell.Quote(field+"="+from))
		}
		if to != "" && len(onlyB) < 2*maxSpecs {
			onlyB = append(onlyB, "--b", shell.Quote(field+"="+to))
		}
	}
	base, specs := b, onlyA
	if len(onlyB) > len(onlyA) {
		base, specs = a, onlyB
	}
	if from, to := a.Versions.Stormglass, b.Versions.Stormglass; from != to && strings.HasPrefix(from, "v") && strings.HasPrefix(to, "v") {
		specs = append(specs, "--a", shell.Quote("rev="+from), "--b", shell.Quote("rev="+to))
	} else if from, to := a.Versions.Kubernetes, b.Versions.Kubernetes; from != to { // the user inserts the paths
		specs = append(specs, "--a", shell.Quote("PATH/controlplane-"+from), "--b", shell.Quote("PATH/controlplane-"+to))
	}
	if len(specs) == 0 {
		return ""
	}
	return strings.Join(append([]string{"loadgen", "ab", shell.Quote(filepath.Join(l.dir(base), result.ScenarioFile))}, specs...), " ")
}
