package prune

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/scratch"
	"github.com/stormglass/stormglass/loadgen/result"
)

// Apply carries out decisions. It changes a decision to LeaveAlone if the entry has changed since Scan. After an error
// it continues with the other entries.
func Apply(ctx context.Context, decisions []Decision, now time.Time) error {
	var errs []error
	for i := range decisions {
		d := &decisions[i]
		if d.Action != Remove && d.Action != Reduce {
			continue
		}
		if ctx.Err() != nil {
			return errors.Join(append(errs, ctx.Err())...)
		}
		if err := apply(d, now); err != nil {
			d.Action, d.Why, d.Frees = LeaveAlone, userfile.Cause(err).Error(), 0
			errs = append(errs, exitcode.Environmentf("%s: %w (prune again to finish)", path.Join(d.Folder, d.Name), userfile.Cause(err)))
		}
	}
	return errors.Join(errs...)
}

func apply(d *Decision, now time.Time) error {
	root, err := os.OpenRoot(d.Folder)
	if err != nil {
		return err
	}
	defer root.Close()
	unlock, busy, err := lock(root, d.dirs)
	if err != nil {
		return err
	}
	if !busy {
		defer unlock()
	}
	switch again := inspect(root, d.Folder, d.Name); {
	case busy:
		d.Action, d.Why, d.Frees = LeaveAlone, "it is active: a process uses it", 0
		return nil
	case again.Alone != "" || again.Kind != d.Kind || !again.Started.Equal(d.Started) || !slices.Equal(again.dirs, d.dirs):
		d.Action, d.Why, d.Frees = LeaveAlone, "it has changed during the prune", 0
		return nil
	}
	if d.Action == Remove {
		return remove(root, d.Name, d.Kind)
	}
	for _, dir := range d.runs {
		if err := reduce(root, dir, now); err != nil {
			return err
		}
	}
	return nil
}

// remove removes a directory. It first renames the directory, so that an interruption leaves no part that looks like a
// run.
func remove(root *os.Root, name string, kind Kind) error {
	rest := restPrefix + name
	if kind == Rest {
		rest = name
	} else if err := root.Rename(name, rest); err != nil {
		return err
	}
	return root.RemoveAll(rest)
}

// reduce removes the heavy parts of a run. It first records their names, so that an interruption leaves no run whose
// parts seem to be lost.
func reduce(root *os.Root, dir string, now time.Time) error {
	r := result.Reduced{Schema: result.ReducedSchema, Time: now.UTC().Truncate(time.Second)}
	for _, part := range heavy() {
		if _, err := root.Lstat(path.Join(dir, part)); err == nil {
			r.Removed = append(r.Removed, part)
		}
	}
	if data, err := root.ReadFile(path.Join(dir, result.ReducedFile)); err == nil {
		var before result.Reduced
		if json.Unmarshal(data, &before) == nil { // an interrupted prune
			r.Removed = slices.Compact(slices.Sorted(slices.Values(append(r.Removed, before.Removed...))))
		}
	}
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return fmt.Errorf("write %s: %w", result.ReducedFile, err)
	}
	temp := path.Join(dir, "."+result.ReducedFile+"-0")
	err = errors.Join(root.WriteFile(temp, append(data, '\n'), 0o600), root.Rename(temp, path.Join(dir, result.ReducedFile)))
	for _, part := range heavy() {
		if err == nil {
			err = root.RemoveAll(path.Join(dir, part))
		}
	}
	return err
}

// lock locks directories until unlock is called. busy is true if another process has locked one of them.
func lock(root *os.Root, dirs []string) (unlock func(), busy bool, err error) {
	var held []*os.File
	unlock = func() {
		for _, f := range held {
			_ = f.Close() // nothing was written
		}
	}
	for _, dir := range dirs {
		f, err := openDir(root, dir)
		if err != nil {
			unlock()
			return nil, false, err
		}
		held = append(held, f)
		if locked, err := scratch.Lock(f); err != nil || !locked {
			unlock()
			return nil, err == nil, err
		}
	}
	return unlock, false, nil
}

// openDir opens a directory. It does not follow a symbolic link.
func openDir(root *os.Root, dir string) (*os.File, error) {
	f, err := root.Open(dir)
	if err != nil {
		return nil, err
	}
	opened, err := f.Stat()
	if err == nil {
		var named fs.FileInfo
		if named, err = root.Lstat(dir); err == nil && !os.SameFile(opened, named) {
			err = fmt.Errorf("%s is a symbolic link", dir)
		}
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
