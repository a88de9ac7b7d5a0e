package control_test

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
)

// Dial must not report ErrNotRunning for a directory that it cannot read.
func TestDialReportsUnreadableDirectory(t *testing.T) {
	if _, err := control.Dial(t.TempDir()); !errors.Is(err, control.ErrNotRunning) {
		t.Errorf("Dial in an empty directory = %v, want ErrNotRunning", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := control.Dial(file); err == nil || errors.Is(err, control.ErrNotRunning) {
		t.Errorf("Dial with a file instead of a directory = %v, want an error other than ErrNotRunning", err)
	}
}

// A supervisor locks the directory some milliseconds before its socket accepts connections. Dial then returns
// ErrStarting.
func TestDialWhileThePlaneStarts(t *testing.T) {
	dir := t.TempDir()
	lock, err := control.LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := control.Dial(dir); !errors.Is(err, control.ErrStarting) {
		t.Errorf("Dial = %v, want ErrStarting", err)
	}
}

// Events returns ErrEnded if the plane ends just before a request.
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
					_, _ = c.Read(make([]byte, 1)) // closing the connection with unread data causes a reset
					c.Close()
				}
				l.Close()
			}()
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := os.MkdirTemp("", "plane-") // short enough for the path of a socket
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
				t.Errorf("Events = %v, want ErrEnded", err)
			}
		})
	}
}
