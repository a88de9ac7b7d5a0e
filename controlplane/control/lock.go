package control

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/stormglass/stormglass/internal/userfile"
)

// LockFile is the name of the lock in a plane's directory.
const LockFile = "lock"

// ErrInUse means that a plane runs in the directory.
var ErrInUse = errors.New("a control plane runs in this directory")

// ErrNotRunning means that no plane runs in the directory.
var ErrNotRunning = errors.New("no control plane runs in this directory")

// ErrStarting means that a supervisor has the directory and cannot be reached yet.
var ErrStarting = errors.New("a control plane is being started in this directory")

// Holder is the content of the lock file, written by the supervisor.
type Holder struct {
	PID int `json:"pid"`
	// Socket is the path of the control socket. It is DIR/control.sock unless
	// that path is too long for a socket.
	Socket string `json:"socket"`
}

// LockDir locks the plane's directory, or fails with ErrInUse. The lock
// belongs to the open file, and every component inherits it: it is free only
// when the last process of the plane is gone.
func LockDir(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, LockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrInUse
		}
		return nil, fmt.Errorf("lock the directory %s: %w", dir, err)
	}
	return f, nil
}

// InUse reports whether any process of a plane in dir still lives.
func InUse(dir string) (bool, error) {
	f, err := openLock(dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	// Shared, so that two who ask do not see each other.
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// openLock opens the lock to look at it. What is no regular file would block.
func openLock(dir string) (*os.File, error) {
	path := filepath.Join(dir, LockFile)
	f, err := userfile.Open(path, userfile.Text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// SetHolder writes who holds the lock.
func SetHolder(lock *os.File, h Holder) error {
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if _, err := lock.WriteAt(data, 0); err != nil {
		return err
	}
	return lock.Truncate(int64(len(data))) // last: the file never says nothing
}

// ReadHolder reads who holds, or last held, the lock of dir.
func ReadHolder(dir string) (Holder, error) {
	f, err := openLock(dir)
	if err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = ErrNotRunning
		}
		return Holder{}, err
	}
	defer f.Close()
	var h Holder
	if err := json.NewDecoder(io.LimitReader(f, 1<<16)).Decode(&h); err != nil {
		return Holder{}, fmt.Errorf("read %s: %w", f.Name(), err)
	}
	return h, nil
}

// IsPlaneDir reports whether a supervisor made what is in dir: the lock says who
// held it, or there is a plane's description. A file that happens to be called
// "lock" is not enough. A supervisor that was killed before it could say who it is
// has left an empty lock, and nothing else but its socket.
func IsPlaneDir(dir string) bool {
	if holder, err := ReadHolder(dir); err == nil && holder.PID > 0 {
		return true
	}
	if _, err := Load(dir); err == nil {
		return true
	}
	info, err := os.Stat(filepath.Join(dir, LockFile))
	if err != nil || info.Size() > 0 {
		return false
	}
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != LockFile && e.Name() != SocketFile {
			return false
		}
	}
	return err == nil
}

// SocketDirPrefix begins the name of a directory for temporary files that is made
// for the socket alone, where the plane's own is too deep for one.
const SocketDirPrefix = "stormglass-"

// RemoveSocketDir removes such a directory that the last holder of dir's lock left
// behind when it was killed. Call it with the lock held.
func RemoveSocketDir(dir string) {
	last, err := ReadHolder(dir)
	if err != nil {
		return
	}
	made := filepath.Dir(last.Socket)
	if filepath.Base(last.Socket) == SocketFile && strings.HasPrefix(filepath.Base(made), SocketDirPrefix) && made != filepath.Clean(dir) {
		os.Remove(last.Socket)
		os.Remove(made) // fails, rightly, if there is anything else in it
	}
}
