// Package restore takes the etcd of a plane back to a snapshot. It owns the data
// directories while they change: the data of all members is replaced or of none,
// also when the supervisor is killed on the way.
package restore

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// What lies beside a member's data while it is changed.
const (
	freshSuffix  = ".restored"       // not yet in use
	beforeSuffix = ".before-restore" // was in use, until the other works
)

// marker lies beside the members' data from the moment when the change is final until nothing of
// what was before is left.
const marker = "restore-done"

// Members are the data directories of all members, beside each other.
type Members []string

// Fresh is where the data belongs that a member is to have instead.
func Fresh(dir string) string { return dir + freshSuffix }

func (m Members) marker() string { return filepath.Join(filepath.Dir(m[0]), marker) }

// Swap puts the fresh data in use and keeps what was. No member may run.
func (m Members) Swap() error {
	// What an earlier change may have left, in the order of Clean.
	if err := m.Clean(); err != nil {
		return err
	}
	for _, dir := range m {
		if err := os.Rename(dir, dir+beforeSuffix); err != nil {
			return err
		}
		if err := os.Rename(dir+freshSuffix, dir); err != nil {
			return err
		}
	}
	return nil
}

// Commit makes a swap final: from now on Recover and PutBack leave it.
func (m Members) Commit() error {
	f, err := os.OpenFile(m.marker(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep the restored data: %w", err)
	}
	f.Close() // it holds nothing
	return nil
}

// Clean removes the old data after a final swap.
func (m Members) Clean() error {
	for _, dir := range m {
		if err := os.RemoveAll(dir + beforeSuffix); err != nil {
			return err
		}
	}
	return remove(m.marker())
}

// DropFresh removes data that is not in use yet.
func (m Members) DropFresh() error {
	var errs []error
	for _, dir := range m {
		errs = append(errs, os.RemoveAll(dir+freshSuffix))
	}
	return errors.Join(errs...)
}

// PutBack restores the data that a swap has put aside, unless the swap is final. No
// member may run.
func (m Members) PutBack() error {
	if _, err := os.Stat(m.marker()); err == nil {
		return nil
	}
	for _, dir := range m {
		if _, err := os.Stat(dir + beforeSuffix); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
		if err := os.Rename(dir+beforeSuffix, dir); err != nil {
			return err
		}
	}
	return nil
}

// Recover ends what a supervisor did not live to end: a change that is final is
// cleaned up after, another one is undone. It is for the next start.
func (m Members) Recover() error {
	finish := m.PutBack
	if _, err := os.Stat(m.marker()); err == nil {
		finish = m.Clean
	}
	return errors.Join(finish(), m.DropFresh())
}

func remove(file string) error {
	if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
