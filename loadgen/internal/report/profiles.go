package report

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/stormglass/stormglass/internal/markdown"
	"github.com/stormglass/stormglass/internal/terminal"
	"github.com/stormglass/stormglass/loadgen/internal/report/chart"
	"github.com/stormglass/stormglass/loadgen/result"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

type profileRow struct {
	Phase, Component, Kind, Length string
	Lost                           string // reason why the profile was lost; empty: it was kept
	File, Size, Command            string // path, size and pprof command; empty if there is no file
}

// profilesView returns a row for each profile of the run, including lost profiles.
func profilesView(_ context.Context, p *page) (any, error) {
	if len(p.result.Run.Profiles) == 0 {
		return nil, nil
	}
	var rows []profileRow
	for _, pr := range p.result.Run.Profiles {
		row := profileRow{Phase: terminal.Clean(pr.Phase), Component: terminal.Clean(pr.Component), Kind: terminal.Clean(pr.Kind), Lost: terminal.Clean(pr.Lost)}
		if pr.Seconds > 0 {
			row.Length = seconds(pr.Seconds)
		}
		if file := profileFile(pr); file != "" {
			row.File, row.Size, row.Command = file, chart.Format(scenario.Size, float64(pr.Bytes)), "go tool pprof -http=: "+shellQuote(file)
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// profileFile returns the path of a profile in the run directory, or "" if the profile has no file.
func profileFile(p result.Profile) string {
	file := terminal.Clean(p.File)
	if p.Lost != "" || path.Dir(file) != result.ProfileDir {
		return ""
	}
	return file
}

// countProfiles counts the profiles that were kept, and describes each lost profile.
func countProfiles(all []result.Profile) (kept int, lost []string) {
	for _, p := range all {
		if profileFile(p) != "" {
			kept++
			continue
		}
		lost = append(lost, terminal.Clean(fmt.Sprintf("%s of %s in phase %s: %s", p.Kind, p.Component, p.Phase, p.Lost)))
	}
	return kept, lost
}

// profiles writes how many profiles were kept and which were lost.
func (t *terminalWriter) profiles(r result.Result) {
	if len(r.Run.Profiles) == 0 {
		return
	}
	kept, lost := countProfiles(r.Run.Profiles)
	t.line("")
	t.line(fmt.Sprintf("profiles  %d of %d recorded, in %s/", kept, len(r.Run.Profiles), result.ProfileDir))
	for _, l := range lost {
		t.line(t.paint("dim", terminal.Shorten("  lost: "+l, t.width)))
	}
}

func profilesSummary(b *strings.Builder, all []result.Profile) {
	if len(all) == 0 {
		return
	}
	tab := newTable("profile", "component", "phase", "file")
	for _, p := range all {
		what := markdown.Cell("lost: " + terminal.Clean(p.Lost))
		if file := profileFile(p); file != "" {
			what = "[" + inMarkdown(path.Base(file)) + "](" + file + ")"
		}
		tab.add(inMarkdown(p.Kind), inMarkdown(p.Component), inMarkdown(p.Phase), what)
	}
	tab.markdown(b)
}
