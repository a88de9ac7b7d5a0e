// Package restore restores the etcd of a plane from a snapshot. It replaces the data of all members or of no member,
// even if the supervisor is killed in the middle. While it replaces the data directories, no other package uses them.
package restore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/supervisor"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
)

// revisionBump is the number that a restore adds to the snapshot's revision, so that clients never see a known revision
// with different content. The API server ends the clients' watches with an error that the revision is compacted, and
// the clients list again. etcd's documentation for Kubernetes recommends a billion, which is more revisions than a
// cluster writes between two snapshots.
const revisionBump = 1_000_000_000

// Restorer restores the etcd of a plane from a snapshot. Every field must be set.
type Restorer struct {
	Components *supervisor.Supervisor
	Layout     topology.Layout
	// Etcd lists the processes of the etcd members.
	Etcd []topology.Process
	// Closing ends when the plane begins to stop.
	Closing context.Context
	// DeleteLeases deletes the leases of components that were stopped, so that new leaders need not wait for the leases
	// to expire.
	DeleteLeases func(context.Context) error
	// SetState changes the plane's state. Publish writes the new processes to cluster.json. Fail ends the plane with an
	// error.
	SetState func(control.State)
	Publish  func() error
	Fail     func(error)
	// Progress writes a line for the user. Report writes an error that does not affect the result.
	Progress func(format string, args ...any)
	Report   func(error)
}

// Restore restores etcd from a snapshot in four steps:
//
//  1. For each member, it writes the snapshot as the data of a new cluster, next to the data in use. If the snapshot is
//     bad, this fails before a component stops.
//  2. It stops all components, as at the plane's end.
//  3. It replaces the data in use by the new data, and starts all components, as at the plane's start.
//  4. When all components are ready, it makes the change permanent and removes the old data. If an earlier step fails,
//     it restores the old data.
//
// Do not call Restore while a fault is active.
func (r *Restorer) Restore(ctx context.Context, file string) (control.Restored, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.Closing, func() { cancel(errors.New("the control plane is stopping")) })()
	claim, err := r.Components.Claim()
	if err != nil {
		return control.Restored{}, err
	}
	defer claim.Release()
	restored := control.Restored{}
	var data Members
	for _, etcd := range r.Etcd {
		restored.Members = append(restored.Members, etcd.Name)
		data = append(data, r.Layout.Data(etcd.Name))
	}
	defer func() { r.Report(data.DropFresh()) }() // leftover data only takes disk space
	if err := r.unpack(ctx, file, data); err != nil {
		return control.Restored{}, err
	}
	begun := time.Now()
	r.SetState(control.Starting)
	r.Progress("restoring etcd from %s", file)
	if err := r.swap(ctx, claim, data); err != nil {
		r.Progress("restore of etcd failed: %v; returning to the previous data", err)
		return control.Restored{}, errors.Join(fmt.Errorf("restore etcd: %w", err), r.swapBack(claim, data))
	}
	r.Report(data.Clean()) // on failure, the plane's next start tries again
	r.SetState(control.Ready)
	restored.Down = time.Since(begun)
	r.Progress("%-26s restored after %.1f s", "etcd", restored.Down.Seconds())
	return restored, r.Publish()
}

// Rehearse takes a snapshot of etcd, restores etcd from it, and deletes the snapshot.
func (r *Restorer) Rehearse(ctx context.Context, client control.EtcdClient) error {
	dir, err := os.MkdirTemp(r.Layout.Dir, "rehearsal-")
	if err != nil {
		return err
	}
	defer func() { r.Report(os.RemoveAll(dir)) }() // leftover data only takes disk space
	file := filepath.Join(dir, "etcd.db")
	err = client.AnyMember(ctx, func(member control.EtcdClient) error {
		return r.Components.RunTool(ctx, member.Environment(), "etcdctl", "snapshot", "save", file)
	})
	if err != nil {
		return err
	}
	_, err = r.Restore(ctx, file)
	return err
}

func (r *Restorer) unpack(ctx context.Context, file string, data Members) error {
	if err := data.DropFresh(); err != nil {
		return err
	}
	token := "stormglass-" + time.Now().UTC().Format("20060102T150405.000000000")
	var cluster []string
	for _, etcd := range r.Etcd {
		cluster = append(cluster, etcd.Name+"="+etcd.Peer)
	}
	for i, etcd := range r.Etcd {
		err := r.Components.RunTool(ctx, nil, "etcdutl", "snapshot", "restore", file,
			"--name="+etcd.Name, "--data-dir="+Fresh(data[i]),
			"--initial-cluster="+strings.Join(cluster, ","), "--initial-cluster-token="+token, "--initial-advertise-peer-urls="+etcd.Peer,
			fmt.Sprintf("--bump-revision=%d", revisionBump), "--mark-compacted")
		if err != nil {
			return fmt.Errorf("restore %s for %s: %w", file, etcd.Name, err)
		}
	}
	return nil
}

// swap stops all components, puts the new data in use and starts all components. If swap returns nil, the change is
// permanent.
func (r *Restorer) swap(ctx context.Context, claim *supervisor.Claim, data Members) error {
	claim.Stop(ctx.Done())
	if err := data.Swap(); err != nil {
		return err
	}
	if err := claim.Start(ctx, r.DeleteLeases); err != nil {
		return err
	}
	return data.Commit()
}

func (r *Restorer) swapBack(claim *supervisor.Claim, data Members) error {
	claim.Stop(r.Closing.Done())
	err := data.PutBack()
	if err == nil && r.Closing.Err() == nil {
		err = claim.Start(r.Closing, r.DeleteLeases)
	}
	if err == nil {
		r.SetState(control.Ready)
		return r.Publish()
	}
	err = fmt.Errorf("return to the previous data of etcd: %w", err)
	r.Fail(err)
	return err
}

// FinishInterrupted completes or undoes a restore that was interrupted because its supervisor was killed. Call it at
// the start of a plane, before its etcd members start.
func FinishInterrupted(layout topology.Layout, cfg control.Config) error {
	var data Members
	for i := range cfg.Count(control.KindEtcd) {
		data = append(data, layout.Data(control.ComponentName(control.KindEtcd, i)))
	}
	if err := data.Recover(); err != nil {
		return fmt.Errorf("finish an interrupted restore in %s: %w", layout.Data(""), err)
	}
	return nil
}

// The suffixes of the directories that a restore creates next to a member's data.
const (
	freshSuffix  = ".restored"       // for the restored data, while the data is not yet in use
	beforeSuffix = ".before-restore" // for the previous data, which is kept until the restored data works
)

// marker is the name of a file next to the members' data directories. The file exists from Commit until Clean has
// removed the old data.
const marker = "restore-done"

// Members lists the data directories of all members. They are in one parent directory.
type Members []string

// Fresh returns the directory for the new data of the member whose data is in dir.
func Fresh(dir string) string { return dir + freshSuffix }

func (m Members) marker() string { return filepath.Join(filepath.Dir(m[0]), marker) }

// Swap puts the new data of all members in use and keeps the old data. No member may be running.
func (m Members) Swap() error {
	// Remove what an earlier change has left: first the old data, then the marker.
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

// Commit makes a Swap permanent: Recover and PutBack no longer undo it.
func (m Members) Commit() error {
	f, err := os.OpenFile(m.marker(), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("keep the restored data: %w", err)
	}
	f.Close() // the file is empty
	return nil
}

// Clean removes the old data after Commit.
func (m Members) Clean() error {
	for _, dir := range m {
		if err := os.RemoveAll(dir + beforeSuffix); err != nil {
			return err
		}
	}
	if err := os.Remove(m.marker()); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// DropFresh removes new data that was not put in use.
func (m Members) DropFresh() error {
	var errs []error
	for _, dir := range m {
		errs = append(errs, os.RemoveAll(dir+freshSuffix))
	}
	return errors.Join(errs...)
}

// PutBack undoes a Swap: it restores the old data of all members, unless Commit was called. No member may be running.
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

// Recover finishes a restore whose supervisor was killed. If Commit was called, it removes the old data; otherwise it
// undoes the Swap. It also removes new data that is not in use. Call it before the members start.
func (m Members) Recover() error {
	finish := m.PutBack
	if _, err := os.Stat(m.marker()); err == nil {
		finish = m.Clean
	}
	return errors.Join(finish(), m.DropFresh())
}
