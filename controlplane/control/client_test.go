package control_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
)

// If a directory is not readable, Dial must not report that nothing runs in it.
func TestDialReportsUnreadableDirectory(t *testing.T) {
	if _, err := control.Dial(t.TempDir()); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("an empty directory: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := control.Dial(file); err == nil || errors.Is(err, control.ErrNotRunning) {
		t.Errorf("no directory at all: %v", err)
	}
}

// A supervisor holds the lock some milliseconds before its socket accepts connections.
func TestDialWhileThePlaneStarts(t *testing.T) {
	dir := t.TempDir()
	lock, err := control.LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := control.Dial(dir); !errors.Is(err, control.ErrStarting) {
		t.Errorf("%v", err)
	}
}

// A client that follows the events may send a request just after the plane has ended.
func TestEventsOfStoppedPlane(t *testing.T) {
	for name, leave := range map[string]func(t *testing.T, socket string){
		"it has removed its socket": func(*testing.T, string) {},
		"it was killed": func(t *testing.T, socket string) {
			l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
			if err != nil {
				t.Fatal(err)
			}
			l.SetUnlinkOnClose(false)
			l.Close()
		},
		"it ends without having accepted": func(t *testing.T, socket string) {
			l, err := net.Listen("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			go func() {
				if c, err := l.Accept(); err == nil {
					_, _ = c.Read(make([]byte, 1)) // the unread rest causes a reset
					c.Close()
				}
				l.Close()
			}()
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "plane-") // short enough for a socket
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(dir)
			lock, err := control.LockDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer lock.Close()
			socket := filepath.Join(dir, control.SocketFile)
			if err := control.SetHolder(lock, control.Holder{PID: 1, Socket: socket}); err != nil {
				t.Fatal(err)
			}
			client, err := control.Dial(dir)
			if err != nil {
				t.Fatal(err)
			}
			leave(t, socket)
			if _, err := client.Events(t.Context(), 7); !errors.Is(err, control.ErrEnded) {
				t.Errorf("%v", err)
			}
		})
	}
}
