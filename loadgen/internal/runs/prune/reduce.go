package prune

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/rundir"
	"github.com/stormglass/stormglass/loadgen/result"
)

// run is the directory of a run that is reduced.
type run struct {
	*os.Root        // the folder of runs
	dir      string // path of the run's directory, relative to the folder
	path     string // the same directory, joined with the path of the folder
}

func (r run) at(part ...string) string { return path.Join(r.dir, path.Join(part...)) }

// reduce removes the heavy parts of a run. If the interval is not 0, it replaces the metrics by downsampled metrics
// instead of removing them. It first records the change in reduced.json, so that no parts of the run seem lost after an
// interruption. It returns false if the metrics already have at most one sample per interval.
func (r run) reduce(ctx context.Context, interval time.Duration, now time.Time) (bool, error) {
	to, err := result.ReadReduced(r.path)
	if err != nil {
		return false, err
	}
	to.Schema, to.Time, to.Interval, to.Files = result.ReducedSchema, now.UTC().Truncate(time.Second), interval.Seconds(), nil
	if interval > 0 {
		if to.Files, err = r.downsample(ctx, interval); err != nil || to.Files == nil {
			return false, err
		}
	}
	for _, part := range heavy() {
		if _, err := r.Lstat(r.at(part)); err == nil && (part != result.TSDBDir || interval == 0) {
			to.Removed = append(to.Removed, part)
		}
	}
	to.Removed = slices.Compact(slices.Sorted(slices.Values(to.Removed)))
	if err := r.record(to); err != nil {
		return false, err
	}
	return true, r.finish(to)
}

// downsample writes the downsampled metrics to newDir, and returns their digests. It returns nil if the metrics already
// have at most one sample per interval.
func (r run) downsample(ctx context.Context, interval time.Duration) (digests map[string]string, err error) {
	rec, err := rundir.OpenToShow(r.path)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	switch {
	case rec.Archive == nil:
		return nil, rec.ArchiveDamage()
	case rec.Interval >= interval:
		return nil, nil
	}
	to := filepath.Join(r.path, newDir)
	if err = r.MkdirAll(r.at(newDir, result.TSDBDir), 0o700); err == nil {
		err = rec.Archive.Downsample(ctx, filepath.Join(to, result.TSDBDir), interval)
	}
	if err == nil {
		digests, err = result.Digest(to)
	}
	if err != nil {
		return nil, errors.Join(err, r.RemoveAll(r.at(newDir)))
	}
	return digests, nil
}

// record writes reduced.json and syncs it to disk, because finish then removes data.
func (r run) record(to result.Reduced) error {
	data, err := json.MarshalIndent(to, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", result.ReducedFile, err)
	}
	temp := r.at("." + result.ReducedFile + "-0")
	f, err := r.OpenFile(temp, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return r.Rename(temp, r.at(result.ReducedFile))
}

// finish removes the recorded parts, and replaces the metrics if they were downsampled.
func (r run) finish(is result.Reduced) error {
	for _, part := range heavy() {
		if slices.Contains(is.Removed, part) || part == result.TSDBDir && is.Interval > 0 {
			if err := r.RemoveAll(r.at(part)); err != nil {
				return err
			}
		}
	}
	if is.Interval > 0 {
		if err := r.Rename(r.at(newDir, result.TSDBDir), r.at(result.TSDBDir)); err != nil {
			return err
		}
	}
	return r.RemoveAll(r.at(newDir))
}

// resume finishes what an interrupted reduce left. It removes metrics in newDir that reduced.json does not list,
// because they are incomplete or have already replaced the metrics of the run.
func (r run) resume() error {
	is, err := result.ReadReduced(r.path)
	if err != nil {
		return err
	}
	found, err := result.Digest(filepath.Join(r.path, newDir))
	if err != nil {
		return err
	}
	if is.Interval == 0 || !maps.Equal(found, is.Files) {
		return r.RemoveAll(r.at(newDir))
	}
	return r.finish(is)
}
