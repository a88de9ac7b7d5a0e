package prune

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/scratch"
)

// Apply carries out decisions. It changes a decision to LeaveAlone if the entry has changed since Scan. After an error
// it continues with the other entries.
func Apply(ctx context.Context, decisions []Decision, now time.Time) error {
	var errs []error
	for i := range decisions {
		d := &decisions[i]
		if d.Action == Keep || d.Action == LeaveAlone {
			continue
		}
		if ctx.Err() != nil {
			return errors.Join(append(errs, ctx.Err())...)
		}
		if err := apply(ctx, d, now); err != nil {
			d.Action, d.Why, d.Frees = LeaveAlone, userfile.Cause(err).Error(), 0
			errs = append(errs, exitcode.Environmentf("%s: %w (prune again to finish)", path.Join(d.Folder, d.Name), userfile.Cause(err)))
		}
	}
	return errors.Join(errs...)
}

func apply(ctx context.Context, d *Decision, now time.Time) error {
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
	case again.Alone != "" || again.Kind != d.Kind || !again.Started.Equal(d.Started) || !slices.Equal(again.dirs, d.dirs) || !slices.Equal(again.runs, d.runs):
		d.Action, d.Why, d.Frees = LeaveAlone, "it has changed during the prune", 0
		return nil
	}
	if d.Action == Remove {
		return remove(root, d.Name, d.Kind)
	}
	changed := false
	for _, r := range d.runs {
		done, err := d.reduce(ctx, run{root, r.dir, filepath.Join(d.Folder, r.dir)}, r, now)
		switch {
		case exitcode.Of(err) == exitcode.NoData:
			d.Action, d.Why, d.Frees = LeaveAlone, "its metrics cannot be downsampled: "+err.Error(), 0
			return nil
		case err != nil:
			return err
		}
		changed = changed || done
	}
	if d.Action == Reduce {
		return nil
	}
	left, err := size(root, d.Name)
	if d.Frees = max(0, d.Bytes-left); !changed {
		*d = done(d.Found, d.interval)
	}
	return err
}

// reduce reduces one run of the decision's entry. It returns false if there was nothing to do.
func (d *Decision) reduce(ctx context.Context, in run, r reducible, now time.Time) (bool, error) {
	if r.unfinished {
		if err := in.resume(); err != nil {
			return false, err
		}
	}
	if d.Action == Resume || !r.canBe(d.interval) {
		return r.unfinished, nil
	}
	changed, err := in.reduce(ctx, d.interval, now)
	return changed || r.unfinished, err
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
