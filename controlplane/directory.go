package controlplane

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/stormglass/stormglass/controlplane/control"
	"github.com/stormglass/stormglass/controlplane/internal/fault/disk"
	"github.com/stormglass/stormglass/controlplane/internal/topology"
	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/shell"
	"github.com/stormglass/stormglass/internal/userfile"
)

type directory struct {
	path string
	lock *os.File
	// resumed reports whether a plane in this directory was ready before or has left data. If so, nothing in the
	// directory may be discarded.
	resumed bool
	// made lists the directories that this start created, the outermost first.
	made []string
	// keepLogs reports whether the logs explain why the start failed. If so, discard keeps them.
	keepLogs bool
}

// ConfigFile returns the path of the config of the plane in dir.
func ConfigFile(dir string) string { return topology.Layout{Dir: dir}.Config() }

// LogFile returns the path of the log of a component, or of the supervisor, of the plane in dir.
func LogFile(dir, name string) string { return topology.Layout{Dir: dir}.Log(name) }

// stragglers is the maximum time to wait until the remaining processes of a killed supervisor have ended.
const stragglers = 3 * time.Second

// UnusableError is the error for a directory that cannot be used for a plane.
type UnusableError struct{ error }

func (e *UnusableError) Unwrap() error { return e.error }

func openDirectory(ctx context.Context, path string) (*directory, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	d := &directory{path: path}
	if err = d.make(); err == nil {
		d.lock, err = lockWithin(ctx, path)
	}
	if err != nil {
		d.discard()
		return nil, err
	}
	for _, sign := range []string{filepath.Join(path, control.ClusterFile), topology.Layout{Dir: path}.Data("")} {
		if _, err := os.Stat(sign); err == nil {
			d.resumed = true
		}
	}
	return d, nil
}

func (d *directory) make() error {
	entries, err := os.ReadDir(d.path)
	if errors.Is(err, os.ErrNotExist) {
		for at := d.path; ; at = filepath.Dir(at) {
			if _, err := os.Lstat(at); err == nil || at == filepath.Dir(at) {
				break
			}
			d.made = append([]string{at}, d.made...)
		}
		err = os.MkdirAll(d.path, 0o700)
	} else if err == nil {
		if len(entries) > 0 && !control.IsPlaneDir(d.path) {
			return &UnusableError{fmt.Errorf("%s: not empty and not a control plane's directory (choose another --dir)", d.path)}
		}
		err = os.Chmod(d.path, 0o700)
	}
	if err == nil {
		err = unix.Access(d.path, unix.W_OK|unix.X_OK)
	}
	if commandline.PathAtFault(err) {
		return &UnusableError{fmt.Errorf("%s: %w (choose another --dir)", d.path, userfile.Cause(err))}
	}
	return err
}

func lockWithin(ctx context.Context, path string) (*os.File, error) {
	inUse := func(pid int) error {
		return fmt.Errorf("%s: a control plane already runs here with supervisor process %d (stop it with: controlplane down --dir %s; or choose another --dir)", path, pid, shell.Quote(path))
	}
	deadline := time.Now().Add(stragglers)
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		lock, err := control.LockDir(path)
		if !errors.Is(err, control.ErrInUse) {
			return lock, err
		}
		if client, err := control.Dial(path); err == nil {
			ask, cancel := context.WithTimeout(ctx, time.Second)
			status, err := client.Status(ask)
			cancel()
			if err == nil && status.State != control.Stopped {
				return nil, inUse(status.SupervisorPID)
			}
		}
		if time.Now().After(deadline) {
			holder, _ := control.ReadHolder(path)
			return nil, inUse(holder.PID)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
	}
}

func (d *directory) release() {
	if d.lock != nil {
		d.lock.Close()
		d.lock = nil
	}
}

// discard removes everything that openDirectory and a failed first start have created. It keeps a directory in which a
// plane was ready before, or that another supervisor has locked. If keepLogs is set, it keeps the logs and also the
// lock file, which marks the directory as a plane's directory.
func (d *directory) discard() {
	if d.lock != nil && !d.resumed {
		entries, _ := os.ReadDir(d.path)
		logs := filepath.Base(topology.Layout{}.Logs())
		for _, e := range entries {
			if d.keepLogs && (e.Name() == logs || e.Name() == control.LockFile) {
				continue
			}
			os.RemoveAll(filepath.Join(d.path, e.Name()))
		}
	}
	d.release()
	for i := len(d.made) - 1; i >= 0; i-- {
		os.Remove(d.made[i]) // fails, intentionally, if it is not empty
	}
}

// Delete deletes the directory of a stopped plane with all data and credentials. It keeps files that no plane wrote,
// and returns their names. It fails with control.ErrInUse while a plane runs there.
func Delete(path string) (foreign []string, err error) {
	path, err = filepath.Abs(path)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil {
		return nil, err
	}
	if holder, err := control.ReadHolder(path); err != nil || holder.PID <= 0 { // stricter than IsPlaneDir, which accepts a cluster.json
		return nil, &UnusableError{fmt.Errorf("%s: not a control plane's directory", path)}
	}
	lock, err := control.LockDir(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	defer lock.Close()
	control.RemoveSocketDir(path)
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		switch name := e.Name(); {
		case slices.Contains(planeEntries(), name) || filepath.Ext(name) == ".sock":
			err = errors.Join(err, os.RemoveAll(filepath.Join(path, name)))
		case name != control.LockFile:
			foreign = append(foreign, name)
		}
	}
	if err == nil { // remove the lock file last: it marks the directory as a plane's directory
		err = os.Remove(filepath.Join(path, control.LockFile))
	}
	if err == nil && len(foreign) == 0 {
		err = os.Remove(path)
	}
	return foreign, err
}

// planeEntries returns the names of the entries that a plane and its observer write to the plane's directory, except
// sockets and the lock.
func planeEntries() []string {
	var l topology.Layout // with an empty Layout, the paths are only file names
	return []string{
		l.Bin(), string(l.PKI()), l.Kubeconfigs(), l.Logs(), l.Data(""), control.AuditLogs, "prometheus", l.Config(), l.SchedulerConfig(),
		l.AuditPolicy(), l.Tracing(), l.Authentication(), l.Authorization(), l.ABACPolicy(), l.CloudState(), portsFile, control.ClusterFile, control.StoppedFile,
	}
}

// fits returns an error if a config does not match the data in the plane's directory. The data of each etcd member
// contains the number and the addresses of all members, and the Secrets in it may be encrypted.
func fits(l topology.Layout, cfg control.Config) error {
	var last control.Config
	data, err := os.ReadFile(l.Config())
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(data, &last)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", l.Config(), err)
	}
	if kms := control.EncryptionKMS; last.APIServer.Encryption == kms && cfg.APIServer.Encryption != kms {
		return fmt.Errorf("apiServer.encryption: the Secrets in %s are encrypted by %s (set apiServer.encryption: %s again)", l.Dir, control.KindKMSPlugin, kms)
	}
	if err := fitsRelease(last, cfg); err != nil {
		return err
	}
	if last.Encrypted() && !cfg.Encrypted() {
		return fmt.Errorf("apiServer.encryption: the Secrets in %s are encrypted (keep encryption on, with any provider)", l.Dir)
	}
	was, is := last.Count(control.KindEtcd), cfg.Count(control.KindEtcd)
	const hint = "choose another --dir; to move the data there, use `controlplane etcd snapshot` and `etcd restore`"
	if was != is {
		return fmt.Errorf("etcd.members: the data in %s belongs to %d members, not %d (%s)", l.Dir, was, is, hint)
	}
	if is > 1 && last.HasLinks() != cfg.HasLinks() {
		return fmt.Errorf("networkFaults: a change of this setting would invalidate the peer addresses that are stored in the data of the %d etcd members in %s (keep the previous setting, or %s)", is, l.Dir, hint)
	}
	return nil
}

// linkPrograms creates symbolic links to the multi-call binary in the plane's directory, such as bin/kubectl. A process
// gets the name of the link with which it is started.
func linkPrograms(l topology.Layout, executable string) error {
	for _, name := range append(control.Kinds(), "kubectl", "etcdctl", "etcdutl", disk.Program) {
		if err := link(l.Program(name), executable); err != nil {
			return err
		}
	}
	return nil
}

// link creates a symbolic link at path that points to program. It replaces an existing file.
func link(path, program string) error {
	if target, err := os.Readlink(path); err == nil && target == program {
		return nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.Symlink(program, path)
}
