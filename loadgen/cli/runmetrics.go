package cli

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/remotewrite"
	"github.com/stormglass/stormglass/loadgen/internal/runmetrics"
	"github.com/stormglass/stormglass/loadgen/result"
)

type queryOptions struct {
	// Expr is PromQL. It may use Grafana's $__range, $__rate_interval and $__interval.
	Expr string
	// At is a point in time (RFC 3339), a time of day (UTC) or a duration since the first scrape. If it is empty,
	// queryRun evaluates the query at the end of Phase or, without a Phase, at the last scrape.
	At string
	// Phase is the name of the phase to query, from its start to its end; empty means the whole run.
	Phase string
	// Range reports whether to evaluate the query at intervals of Step, from the start to the end. A zero Step means
	// the interval between scrapes.
	Range bool
	Step  time.Duration
}

// queryRun evaluates PromQL over the recorded run in dir and calls `show` with the result, which is valid until `show`
// returns. queryRun does not change the directory.
func queryRun(ctx context.Context, dir string, o queryOptions, show func(runmetrics.Answer) error) (err error) {
	r, err := runmetrics.Open(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	q := runmetrics.Query{Expr: o.Expr, From: r.Start, To: r.End, Range: o.Range, Step: o.Step}
	if o.Phase != "" {
		p, err := r.Phase(o.Phase)
		if err != nil {
			return err
		}
		q.From, q.To = p.Start, p.End
	}
	if o.At != "" {
		if q.To, err = momentOf("--at", o.At, r.Start); err != nil {
			return err
		}
	}
	answer, err := r.Ask(ctx, q)
	if err != nil {
		return err
	}
	return show(answer)
}

// momentOf parses text, the value of a flag, as a point in time. `first` is the time of the run's first scrape.
func momentOf(flag, text string, first time.Time) (time.Time, error) {
	at, err := parseMoment(text, first, time.Now())
	if err != nil {
		return at, exitcode.Usagef("%s %q is not a time (write 20s since the first scrape, 14:00:00 (UTC) or 2026-11-21T14:00:00Z)", flag, text)
	}
	return at, nil
}

// exportOptions select the data of a recorded run to export, and the destination.
type exportOptions struct {
	Format string
	// Labels are labels to add to each series. The label `run` is the directory's name unless Labels sets it. An empty
	// value removes a label.
	Labels map[string]string
	// Start and End are the times of the first and the last sample to export, with the syntax of queryOptions.At. Empty
	// means no limit.
	Start, End string
	// Rules reports whether to export also the results of the built-in rules: recorded series and ALERTS.
	Rules bool
	// Writer is the destination in format OpenMetrics, Dir the destination of TSDB blocks, and Receiver the destination of
	// remote write.
	Writer   io.Writer
	Dir      string
	Receiver remotewrite.Config
	// Log is called when the receiver becomes unavailable and when it is available again.
	Log func(format string, args ...any)
}

// exportRun copies the metrics of the recorded run in dir to the destination in o. It does not change the directory.
func exportRun(ctx context.Context, dir string, o exportOptions) (done runmetrics.Exported, err error) {
	r, err := runmetrics.Open(ctx, dir)
	if err != nil {
		return done, err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	e := runmetrics.Export{Labels: runLabels(r.Name(), o.Labels), Rules: o.Rules}
	for _, bound := range []struct {
		flag, text string
		into       *time.Time
	}{{"--start", o.Start, &e.From}, {"--end", o.End, &e.To}} {
		if bound.text != "" {
			if *bound.into, err = momentOf(bound.flag, bound.text, r.Start); err != nil {
				return done, err
			}
		}
	}
	if !e.From.IsZero() && !e.To.IsZero() && !e.To.After(e.From) {
		return done, exitcode.Usagef("--start %s --end %s: the end is before the start", o.Start, o.End)
	}
	switch o.Format {
	case runmetrics.OpenMetrics:
		return r.WriteOpenMetrics(ctx, o.Writer, e)
	case runmetrics.Blocks:
		return r.WriteBlocks(ctx, o.Dir, e)
	}
	client, err := remotewrite.New(o.Receiver)
	if err != nil {
		return done, exitcode.Usagef("--remote-write: %w", err)
	}
	var sent result.RemoteWrite
	sent, err = r.Send(ctx, client, e, o.Log)
	return runmetrics.Exported{Samples: int(sent.Sent)}, err
}

func runLabels(name string, more map[string]string) map[string]string {
	all := map[string]string{runmetrics.RunLabel: name}
	for label, v := range more {
		if all[label] = v; v == "" {
			delete(all, label)
		}
	}
	return all
}
