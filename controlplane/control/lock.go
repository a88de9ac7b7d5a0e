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

// ErrStarting means that a supervisor has locked the directory but cannot be reached yet.
var ErrStarting = errors.New("another process is starting a control plane in this directory")

// Holder is the content of the lock file. The supervisor writes it.
type Holder struct {
	PID int `json:"pid"`
	// Socket is the path of the control socket: DIR/control.sock, unless
	// that path is too long for a socket.
	Socket string `json:"socket"`
}

// LockDir locks the plane's directory, or fails with ErrInUse. The lock belongs to the open file. Every component
// inherits the file, so the kernel releases the lock when the last process of the plane has ended.
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

// InUse reports whether any process of a plane in dir still runs.
func InUse(dir string) (bool, error) {
	f, err := openLock(dir)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer f.Close()
	// Use a shared lock, so that concurrent calls of InUse do not mistake each other for a plane.
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// openLock opens the lock file for inspection. It fails if the lock is not a regular file, because opening a pipe or a
// device could block.
func openLock(dir string) (*os.File, error) {
	path := filepath.Join(dir, LockFile)
	f, err := userfile.Open(path, userfile.Text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// SetHolder writes the holder of a lock into the lock file.
func SetHolder(lock *os.File, h Holder) error {
	data, err := json.Marshal(h)
	if err != nil {
		return err
	}
	data = append(data, '\n')
	if _, err := lock.WriteAt(data, 0); err != nil {
		return err
	}
	return lock.Truncate(int64(len(data))) // last, so that the file is never empty
}

// ReadHolder returns the current holder of the lock of dir, or the last holder if the lock is free.
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

// IsPlaneDir reports whether a supervisor created the content of dir. One of these conditions must hold: the lock file
// names a holder, dir contains a plane's description, or dir contains only an empty lock file and perhaps the control
// socket, because the supervisor was killed before it wrote its holder. Another file that happens to have the name
// "lock" is not sufficient.
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

// SocketDirPrefix is the name prefix of the temporary directory that holds the socket if the path
// of the plane's directory is too long for a socket.
const SocketDirPrefix = "stormglass-"

// RemoveSocketDir removes the temporary directory of the socket. The last holder of the lock leaves this directory
// behind if it is killed. The caller must hold the lock.
func RemoveSocketDir(dir string) {
	last, err := ReadHolder(dir)
	if err != nil {
		return
	}
	made := filepath.Dir(last.Socket)
	if filepath.Base(last.Socket) == SocketFile && strings.HasPrefix(filepath.Base(made), SocketDirPrefix) && made != filepath.Clean(dir) {
		os.Remove(last.Socket)
		os.Remove(made) // fails, intentionally, if the directory is not empty
	}
}
