package runmetrics

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/prometheus/storage"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/archive"
	"github.com/stormglass/stormglass/loadgen/internal/remotewrite"
	"github.com/stormglass/stormglass/loadgen/result"
)

// The formats of an export.
const (
	OpenMetrics = "openmetrics"
	Blocks      = "blocks"
	RemoteWrite = "remote-write"
)

// Export selects the samples of a run to export.
type Export struct {
	// Labels are labels to add to each exported series.
	Labels map[string]string
	// From and To limit the time range of the samples. A zero From means the first sample, a zero To the last sample.
	From, To time.Time
	// Rules reports whether to export also the results of the rules that Stormglass provides.
	Rules bool
}

// Exported holds the numbers of exported samples and blocks.
type Exported struct {
	Samples int
	Blocks  int // number of blocks of Prometheus' TSDB
}

func (e Export) source(ctx context.Context, r *Run) (q storage.Queryable, start, end int64, err error) {
	q = r.Raw()
	if e.Rules {
		if q, err = r.Replayed(ctx); err != nil {
			return nil, 0, 0, err
		}
	}
	start, end = 0, r.End.UnixMilli()
	if !e.From.IsZero() {
		start = e.From.UnixMilli()
	}
	if !e.To.IsZero() {
		end = min(end, e.To.UnixMilli())
	}
	// Include samples before the first and after the last scrape of all targets: these are samples of some targets
	// only.
	first, last, err := extent(ctx, q)
	if e.To.IsZero() {
		end = last
	}
	return archive.WithLabels(q, e.Labels), max(start, first), end, err
}

// WriteOpenMetrics writes the selected samples of a run as OpenMetrics text with timestamps.
func (r *Run) WriteOpenMetrics(ctx context.Context, w io.Writer, e Export) (Exported, error) {
	q, start, end, err := e.source(ctx, r)
	if err != nil {
		return Exported{}, r.readError(err)
	}
	n, err := writeOpenMetrics(ctx, w, q, start, end)
	return Exported{Samples: n}, r.readError(err)
}

// WriteBlocks writes the selected samples of a run to dir as blocks of Prometheus' TSDB. It creates dir if necessary.
// dir must not be inside the directory of a run.
func (r *Run) WriteBlocks(ctx context.Context, dir string, e Export) (Exported, error) {
	if inRun, err := withinRun(dir); err != nil || inRun {
		return Exported{}, exitcode.Usagef("--out %s: this path is inside the directory of a run, which export must not change (choose another directory)", dir)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Exported{}, exitcode.Usagef("--out %s: %w (name a directory that can be created)", dir, userfile.Cause(err))
	}
	q, start, end, err := e.source(ctx, r)
	if err != nil {
		return Exported{}, r.readError(err)
	}
	blocks, n, err := archive.WriteBlocks(ctx, dir, q, start, end)
	if path, ok := errors.AsType[*os.PathError](err); ok {
		err = exitcode.Environmentf("--out %s: %w", dir, path)
	}
	return Exported{Samples: n, Blocks: blocks}, r.readError(err)
}

// withinRun reports whether dir is the directory of a run or is inside one.
func withinRun(dir string) (bool, error) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return false, err
	}
	for at := abs; ; at = filepath.Dir(at) {
		for _, name := range []string{result.RunFile, result.TimelineFile, result.TSDBDir} {
			if _, err := os.Lstat(filepath.Join(at, name)); err == nil {
				return true, nil
			}
		}
		if at == filepath.Dir(at) {
			return false, nil
		}
	}
}

// Send sends the selected samples of a run to a remote write receiver.
func (r *Run) Send(ctx context.Context, c *remotewrite.Client, e Export, log func(string, ...any)) (result.RemoteWrite, error) {
	q, start, end, err := e.source(ctx, r)
	if err != nil {
		return result.RemoteWrite{}, r.readError(err)
	}
	sent, err := remotewrite.Send(ctx, c, remotewrite.Options{Samples: q, From: time.UnixMilli(start), Log: log}, time.UnixMilli(end))
	switch {
	case ctx.Err() != nil:
		return sent, ctx.Err()
	case err != nil:
		return sent, exitcode.Environmentf("%s: %s (%d of %d samples were sent; to send the rest, add --start %s)", c.URL(), oneLine(err), sent.Sent, sent.Sent+sent.Unsent, sent.UnsentFrom.Format(time.RFC3339Nano))
	case sent.Refused > 0:
		return sent, exitcode.Environmentf("%s rejected %d samples and accepted %d: %s%s", c.URL(), sent.Refused, sent.Sent, sent.Error, oldSamplesHint(sent.Error))
	}
	return sent, nil
}

// oldSamplesHint returns a hint if a Prometheus server refused samples because they are too old. Otherwise it returns
// "".
func oldSamplesHint(refusal string) string {
	for _, why := range []string{"out of bounds", "out of order", "too old"} {
		if strings.Contains(refusal, why) {
			return " (Prometheus accepts old samples only within storage.tsdb.out_of_order_time_window; --format blocks does not need this setting)"
		}
	}
	return ""
}

// readError converts an error of an export: a read error of the archive to a *result.Damaged, and a write error to an
// environment error.
func (r *Run) readError(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || exitcode.IsUsage(err) || exitcode.IsEnvironment(err) {
		return err
	}
	if errors.Is(err, io.ErrClosedPipe) || isWriteError(err) {
		return exitcode.EnvironmentError(err)
	}
	return r.rec.Unreadable(err)
}

func isWriteError(err error) bool {
	path, ok := errors.AsType[*os.PathError](err)
	return ok && path.Op == "write"
}
