package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/prometheus/promql"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/judge"
	"github.com/stormglass/stormglass/loadgen/internal/judge/diagnosis"
	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/internal/scrape/promimport"
	"github.com/stormglass/stormglass/loadgen/result"
)

// diagnoseOptions select the time to diagnose (Under) and the comparison period, a time without problems (Calm). A time
// is the name of a phase of a run, or "FROM,TO". FROM and TO are points in time (RFC 3339, or a UTC time of day such as
// 14:00:00) or durations since the first scrape of a run. By default, Calm is the first quarter of a run's phases, at
// most a minute, and Under is the rest of the run.
type diagnoseOptions struct {
	Calm, Under string
	// Step is the scrape interval. Zero means that the diagnosis detects it.
	Step time.Duration
	// Reference is the directory of a healthy run. If set, this run replaces the comparison period.
	Reference string
}

// diagnoseRun finds the causes of problems in the run in dir, from the run's metrics alone.
func diagnoseRun(ctx context.Context, dir string, o diagnoseOptions) (d result.Diagnosis, err error) {
	rec, err := rundir.Open(dir)
	if err != nil {
		return d, err
	}
	defer func() {
		if err != nil && ctx.Err() != nil { // an interrupted read is not a sign of damage
			err = ctx.Err()
		}
		err = errors.Join(err, rec.Close())
	}()
	if rec.Archive == nil {
		return d, fmt.Errorf("%s: %w", dir, rec.ArchiveDamage())
	}
	first, _, err := rec.Archive.Bounds(ctx)
	if err != nil {
		return d, rec.Unreadable(err)
	}
	from, to, err := rec.Archive.Scraped(ctx)
	if err != nil {
		return d, rec.Unreadable(err)
	}
	var judged result.Result
	if result.ReadJSON(dir, result.ResultFile, &judged) != nil {
		judged = result.Result{} // without a judged result, for example because the run is still active
	}
	options := judge.DiagnosisOptions(rec, judged)
	options.Step = o.Step
	for _, s := range o.spans(&options) {
		if s.text == "" {
			continue
		}
		if *s.into, err = spanOfRun(s.text, rec.Phases(), first); err == nil {
			*s.into, err = clip(*s.into, from, to)
		}
		if err != nil {
			return d, exitcode.Usagef("%s %q: %w", s.flag, s.text, err)
		}
	}
	if err := apartFrom(options); err != nil {
		return d, err
	}
	if o.Under != "" {
		options.Failed, options.NoData = failedWithin(options.Failed, options.Under), nil
	}
	if o.Reference != "" {
		reference, err := rundir.Open(o.Reference)
		if err != nil {
			return d, exitcode.Usagef("--reference: %w", err)
		}
		defer reference.Close()
		if options.Reference = reference.Archive; options.Reference == nil {
			return d, exitcode.Usagef("--reference %s: %w", o.Reference, reference.ArchiveDamage())
		}
	}
	d, err = diagnosis.OfArchive(ctx, rec.Archive, options)
	d.Reference = o.Reference
	if _, ok := errors.AsType[promql.ErrStorage](err); ok {
		return d, rec.Unreadable(err)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", dir, err)
	}
	return d, err
}

// prometheusDiagnosis returns a function that diagnoses metrics from a Prometheus server. It diagnoses the time that o
// sets or, by default, the time until the call. While a problem lasts, later calls keep the comparison period from
// before the problem, as long as the server has data from that period.
func prometheusDiagnosis(p promimport.Config, o diagnoseOptions) func(context.Context) (result.Diagnosis, error) {
	var live diagnosis.Live
	return func(ctx context.Context) (result.Diagnosis, error) {
		d, err := diagnosePrometheus(ctx, p, o, &live)
		if err != nil && ctx.Err() != nil {
			return d, ctx.Err()
		}
		if err == nil || exitcode.Of(err) == exitcode.NoData { // if data is missing, forget the comparison period: it may be the reason
			live.Saw(d)
		}
		return d, err
	}
}

func diagnosePrometheus(ctx context.Context, p promimport.Config, o diagnoseOptions, live *diagnosis.Live) (d result.Diagnosis, err error) {
	source, err := promimport.New(p)
	if err != nil {
		return d, exitcode.UsageError(fmt.Errorf("--prometheus: %w", err))
	}
	now := time.Now()
	named := diagnosis.Options{Step: o.Step}
	for _, s := range o.spans(&named) {
		if s.text == "" {
			continue
		}
		if *s.into, err = parseSpan(s.text, time.Time{}, now); err == nil {
			*s.into, err = clip(*s.into, time.Time{}, now)
		}
		if err != nil {
			return d, exitcode.Usagef("%s %q: %w", s.flag, s.text, err)
		}
	}
	if err := cmp.Or(o.bounded(named), apartFrom(named)); err != nil {
		return d, err
	}
	if err := source.NameJobs(ctx); err != nil {
		return d, ofPrometheus(ctx, source, err)
	}
	if live.Step = o.Step; o.Step == 0 && o.Under == "" {
		if live.Step, err = diagnosis.Interval(ctx, source, now); err != nil {
			return d, ofPrometheus(ctx, source, err)
		}
	}
	options := live.Options(now)
	if o.Under != "" { // by default, the comparison period is the hour before Under
		options.Under, options.Calm, options.CalmByDefault = named.Under, diagnosis.CalmBefore(named.Under.From), true
	}
	if o.Calm != "" {
		options.Calm, options.CalmByDefault = named.Calm, false
	}
	if err := apartFrom(options); err != nil {
		return d, err
	}
	switch clusters, err := source.Ambiguous(ctx, options.Under.To); {
	case err != nil:
		return d, ofPrometheus(ctx, source, err)
	case clusters != "":
		return d, exitcode.Usagef("--prometheus: %s: %s", source.URL(), clusters)
	}
	if options.Step == 0 {
		if options.Step, err = diagnosis.Interval(ctx, source, options.Under.To); err != nil {
			return d, ofPrometheus(ctx, source, err)
		}
	}
	if err := o.bounded(options); err != nil {
		return d, err
	}
	if o.Under == "" {
		if err := diagnosis.UpToDate(ctx, source, now, options.Step); err != nil {
			return d, ofPrometheus(ctx, source, err)
		}
	}
	d, err = diagnosis.Diagnose(ctx, source, options)
	return d, ofPrometheus(ctx, source, err)
}

// ofPrometheus adds the URL of the Prometheus server to err. If the server scrapes no API server, or no component at
// all, ofPrometheus also adds the names of the server's scrape jobs.
func ofPrometheus(ctx context.Context, source *promimport.Source, err error) error {
	if errors.Is(err, diagnosis.NoAPIServer) || errors.Is(err, diagnosis.Nothing) && !source.Scrapes(ctx) {
		err = fmt.Errorf("%w: %w", err, source.FoundNone(ctx))
	}
	if err == nil {
		return nil
	}
	if err = fmt.Errorf("%s: %w", source.URL(), err); exitcode.Of(err) != exitcode.NoData {
		return exitcode.EnvironmentError(err)
	}
	return err
}

// longest is the maximum length of the comparison period and of the diagnosed time with a Prometheus server.
const longest = 48 * time.Hour

// bounded returns an error if the comparison period or the diagnosed time is too long or has too many steps. If the
// step is zero (unknown), bounded does not check the number of steps.
func (o diagnoseOptions) bounded(times diagnosis.Options) error {
	for _, s := range o.spans(&times) {
		if s.text == "" {
			continue
		}
		switch length := s.into.To.Sub(s.into.From); {
		case length > longest:
			return exitcode.Usagef("%s %q: a period of %s is too long, the maximum is %s (choose a shorter one)", s.flag, s.text, length, longest)
		case times.Step > 0 && length/times.Step > archive.MaxPoints:
			return exitcode.Usagef("%s %q: the period has %d steps of %s, the maximum is %d (choose a larger --step or a shorter period)", s.flag, s.text, length/times.Step, times.Step, archive.MaxPoints)
		}
	}
	return nil
}

// apartFrom returns an error if the diagnosed time overlaps the comparison period.
func apartFrom(o diagnosis.Options) error {
	none := result.Span{}
	if o.Calm != none && o.Under != none && o.Calm.From.Before(o.Under.To) && o.Under.From.Before(o.Calm.To) {
		from, to := o.Calm.From, o.Calm.To
		if o.Under.From.After(from) {
			from = o.Under.From
		}
		if o.Under.To.Before(to) {
			to = o.Under.To
		}
		return exitcode.Usagef("--comparison-period and --period overlap from %s to %s", from.UTC().Format(time.DateTime), to.UTC().Format(time.DateTime))
	}
	return nil
}

func failedWithin(gates []diagnosis.FailedGate, s result.Span) []diagnosis.FailedGate {
	return slices.DeleteFunc(slices.Clone(gates), func(g diagnosis.FailedGate) bool {
		return !slices.ContainsFunc(g.Broken, func(in result.Span) bool { return in.From.Before(s.To) && s.From.Before(in.To) })
	})
}

type namedSpan struct {
	flag, text string
	into       *result.Span
}

func (o diagnoseOptions) spans(into *diagnosis.Options) []namedSpan {
	return []namedSpan{{"--comparison-period", o.Calm, &into.Calm}, {"--period", o.Under, &into.Under}}
}

// spanOfRun parses the name of a phase, or "FROM,TO", and returns the time range in the run.
func spanOfRun(text string, phases map[string]result.Phase, first time.Time) (result.Span, error) {
	if p, ok := phases[text]; ok {
		return result.Span{From: p.Start, To: p.End}, nil
	}
	if !strings.Contains(text, ",") {
		has := "no phases are recorded"
		if len(phases) > 0 {
			names := slices.SortedFunc(maps.Keys(phases), func(a, b string) int { return phases[a].Start.Compare(phases[b].Start) })
			has = "it has " + strings.Join(names, ", ")
		}
		return result.Span{}, fmt.Errorf("the run has no phase with this name: %s (name a phase, or write FROM,TO%s)", has, spanHint(first))
	}
	return parseSpan(text, first, time.Now())
}

// clip limits the time range s to the recorded time, from `from` to `to`. If `from` is zero, there is no lower limit.
// clip returns an error if s and the recorded time do not overlap.
func clip(s result.Span, from, to time.Time) (result.Span, error) {
	if !s.From.Before(to) || !s.To.After(from) {
		recorded := "up to " + to.UTC().Format(time.DateTime)
		if !from.IsZero() {
			recorded = "from " + from.UTC().Format(time.DateTime) + " to " + to.UTC().Format(time.DateTime)
		}
		return s, fmt.Errorf("no metrics were recorded in that time; the recording has only metrics %s", recorded)
	}
	if s.From.Before(from) {
		s.From = from
	}
	if s.To.After(to) {
		s.To = to
	}
	return s, nil
}

// parseSpan parses "FROM,TO". `first` is the time of the first scrape; if it is zero, durations are errors. If TO is a
// time of day later today, parseSpan uses the time now instead.
func parseSpan(text string, first, now time.Time) (s result.Span, err error) {
	from, to, ok := strings.Cut(text, ",")
	if !ok {
		return s, errors.New("write FROM,TO" + spanHint(first))
	}
	if s.From, err = parseMoment(strings.TrimSpace(from), first, now); err != nil {
		return s, err
	}
	if s.To, err = parseMoment(strings.TrimSpace(to), first, now); err != nil {
		return s, err
	}
	switch {
	case !s.To.Before(s.From):
	case first.IsZero() && toCome(to, now):
		s.To = now
	case !first.IsZero() && s.From.Sub(first) > 12*time.Hour:
		if clock, isClock := clockOf(from); isClock && onDay(clock, first).Before(s.From) { // this time of day is before the first scrape, so parseMoment returned the next day
			s.From = s.From.Add(-24 * time.Hour)
		}
	}
	if !s.To.After(s.From) {
		return s, errors.New("TO must be after FROM")
	}
	return s, nil
}

func parseMoment(text string, first, now time.Time) (time.Time, error) {
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t, nil
	}
	if clock, ok := clockOf(text); ok {
		return atClock(clock, first, now), nil
	}
	if d, err := time.ParseDuration(text); err == nil && !first.IsZero() {
		return first.Add(d), nil
	}
	return time.Time{}, fmt.Errorf("%q is not a time (write FROM,TO%s)", text, spanHint(first))
}

// toCome reports whether text is a time of day (UTC) later today.
func toCome(text string, now time.Time) bool {
	clock, ok := clockOf(text)
	return ok && onDay(clock, now).After(now)
}

func clockOf(text string) (clock time.Time, ok bool) {
	clock, err := time.Parse(time.TimeOnly, strings.TrimSpace(text))
	return clock, err == nil
}

// onDay combines the date of `day` with the time of day of `clock`, both in UTC.
func onDay(clock, day time.Time) time.Time {
	return day.UTC().Truncate(24 * time.Hour).Add(clock.Sub(clock.Truncate(24 * time.Hour)))
}

// atClock returns the earliest time, not before first, with the time of day of clock (UTC). If first is zero, it
// returns the latest such time before the time now.
func atClock(clock, first, now time.Time) time.Time {
	day := first
	if first.IsZero() {
		day = now
	}
	at := onDay(clock, day)
	switch {
	case first.IsZero() && at.After(now):
		return at.Add(-24 * time.Hour)
	case !first.IsZero() && at.Before(first.Truncate(time.Second)):
		return at.Add(24 * time.Hour)
	}
	return at
}

func spanHint(first time.Time) string {
	if first.IsZero() {
		return ", for example 14:00:00,14:05:00 (UTC) or 2026-11-21T14:00:00Z,2026-11-21T14:05:00Z"
	}
	return ", for example 20s,50s since the first scrape, 14:00:00,14:05:00 (UTC) or 2026-11-21T14:00:00Z,2026-11-21T14:05:00Z, or the name of a phase"
}
