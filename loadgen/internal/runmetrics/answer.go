package runmetrics

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/prometheus/common/model"

	"github.com/stormglass/stormglass/internal/terminal"
)

// timeForm is the format of times, with milliseconds, the resolution of the archive.
const timeForm = "2006-01-02T15:04:05.000Z"

// WriteText writes the answer as a table with one line per series. For a range query, a line for each point of the
// series follows, with the time since the start of the query.
func (a Answer) WriteText(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if !a.Range {
		for _, s := range a.Values {
			fmt.Fprintf(t, "%s\t%s\n", metric(s.Labels), number(s.V))
		}
		return t.Flush()
	}
	for _, s := range a.Series {
		fmt.Fprintln(t, metric(s.Labels))
		for _, p := range s.Points {
			fmt.Fprintf(t, "  %s\t+%s\t%s\n", p.T.Format(timeForm), p.T.Sub(a.From), number(p.V))
		}
	}
	return t.Flush()
}

// Data returns the answer in the format of Prometheus' query API.
func (a Answer) Data() any {
	type data struct {
		ResultType string `json:"resultType"`
		Result     any    `json:"result"`
	}
	out := data{"vector", model.Vector{}}
	if a.Range {
		all := model.Matrix{}
		for _, s := range a.Series {
			one := &model.SampleStream{Metric: labelSet(s.Labels)}
			for _, p := range s.Points {
				one.Values = append(one.Values, model.SamplePair{Timestamp: model.TimeFromUnixNano(p.T.UnixNano()), Value: model.SampleValue(p.V)})
			}
			all = append(all, one)
		}
		out = data{"matrix", all}
	} else {
		all := model.Vector{}
		for _, s := range a.Values {
			all = append(all, &model.Sample{Metric: labelSet(s.Labels), Timestamp: model.TimeFromUnixNano(a.At.UnixNano()), Value: model.SampleValue(s.V)})
		}
		out.Result = all
	}
	return out
}

// WriteCSV writes the answer as CSV with one line per point: the time, a column for each label, and the value.
func (a Answer) WriteCSV(w io.Writer) error {
	names := map[string]bool{}
	for _, l := range a.labels() {
		for name := range l {
			names[name] = true
		}
	}
	columns := slices.Sorted(maps.Keys(names))
	out := csv.NewWriter(w)
	head := []string{"time"}
	for _, c := range columns {
		head = append(head, printable(c))
	}
	_ = out.Write(append(head, "value")) // out.Error returns the first error of all calls of Write
	row := func(at time.Time, of map[string]string, v float64) {
		cells := []string{at.UTC().Format(timeForm)}
		for _, c := range columns {
			cells = append(cells, printable(of[c]))
		}
		_ = out.Write(append(cells, number(v)))
	}
	for _, s := range a.Values {
		row(a.At, s.Labels, s.V)
	}
	for _, s := range a.Series {
		for _, p := range s.Points {
			row(p.T, s.Labels, p.V)
		}
	}
	out.Flush()
	return out.Error()
}

// Empty reports whether the query returned no series.
func (a Answer) Empty() bool { return len(a.Values)+len(a.Series) == 0 }

func (a Answer) labels() (all []map[string]string) {
	for _, s := range a.Values {
		all = append(all, s.Labels)
	}
	for _, s := range a.Series {
		all = append(all, s.Labels)
	}
	return all
}

func metric(l map[string]string) string { return terminal.Clean(labelSet(l).String()) }

// printable replaces control characters and invalid UTF-8. It keeps line breaks and tabs, which CSV permits in a field.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Cf, r) {
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

func labelSet(l map[string]string) model.Metric {
	m := model.Metric{}
	for name, v := range l {
		m[model.LabelName(name)] = model.LabelValue(v)
	}
	return m
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', -1, 64) }
