package control_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stormglass/stormglass/controlplane/control"
)

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A failed first start removes everything in its directory. Therefore IsPlaneDir must never accept a directory with
// other files.
func TestPlaneDirectoriesAreRecognized(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		want  bool
	}{
		"empty":                            {nil, false},
		"another program's lock":           {map[string]string{"lock": "", "thesis.tex": "x"}, false},
		"another program's lock with text": {map[string]string{"lock": "4711\n"}, false},
		"other JSON":                       {map[string]string{"lock": `{"version": 3}`}, false},
		"a supervisor's":                   {map[string]string{"lock": `{"pid": 17, "socket": "/a/control.sock"}`, "data": ""}, true},
		"of one that was killed at once":   {map[string]string{"lock": "", "control.sock": ""}, true},
		"of one that was ready":            {map[string]string{"lock": "", "cluster.json": `{"schema": "stormglass.cluster/v1"}`, "logs": ""}, true},
	} {
		dir := t.TempDir()
		for file, text := range c.files {
			put(t, dir, file, text)
		}
		if got := control.IsPlaneDir(dir); got != c.want {
			t.Errorf("%s: IsPlaneDir = %v, want %v", name, got, c.want)
		}
	}
}

func TestShorterLockContentReplacesLonger(t *testing.T) {
	dir := t.TempDir()
	lock, err := control.LockDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	for _, h := range []control.Holder{{PID: 4711, Socket: "/a/long/way/control.sock"}, {PID: 1, Socket: "/b"}} {
		if err := control.SetHolder(lock, h); err != nil {
			t.Fatal(err)
		}
		if got, err := control.ReadHolder(dir); err != nil || got != h {
			t.Errorf("ReadHolder = %+v, %v; want %+v", got, err, h)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, control.LockFile)); string(text) != "{\"pid\":1,\"socket\":\"/b\"}\n" {
		t.Errorf("the lock file contains %q, %v; want only the shorter holder", text, err)
	}
}

// A killed supervisor leaves the directory of its socket in /tmp. The next supervisor in the plane's directory removes
// that directory and nothing else.
func TestSocketDirectoryIsRemoved(t *testing.T) {
	for name, c := range map[string]struct {
		made, besides string
		stays         bool
	}{
		"left by a killed supervisor": {control.SocketDirPrefix + "123", "", false},
		"with something else in it":   {control.SocketDirPrefix + "123", "notes", true},
		"of another name":             {"planes", "", true},
	} {
		plane, made := t.TempDir(), filepath.Join(t.TempDir(), c.made)
		if err := os.Mkdir(made, 0o700); err != nil {
			t.Fatal(err)
		}
		put(t, made, control.SocketFile, "")
		if c.besides != "" {
			put(t, made, c.besides, "")
		}
		lock, err := control.LockDir(plane)
		if err != nil {
			t.Fatal(err)
		}
		if err := control.SetHolder(lock, control.Holder{PID: 1, Socket: filepath.Join(made, control.SocketFile)}); err != nil {
			t.Fatal(err)
		}
		control.RemoveSocketDir(plane)
		lock.Close()
		if _, err := os.Stat(made); (err == nil) != c.stays {
			t.Errorf("%s: stat of the socket directory = %v; want it to exist: %v", name, err, c.stays)
		}
	}
	control.RemoveSocketDir(t.TempDir()) // no supervisor has locked this directory
}

// Load, InUse and ReadHolder refuse files that are not regular, because reading them could block forever.
func TestEndlessFilesAreRefused(t *testing.T) {
	for what, put := range map[string]func(path string) error{
		"a pipe":    func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a device":  func(path string) error { return os.Symlink("/dev/zero", path) },
		"directory": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		dir := t.TempDir()
		for _, file := range []string{control.LockFile, control.ClusterFile} {
			if err := put(filepath.Join(dir, file)); err != nil {
				t.Fatal(err)
			}
		}
		_, load := control.Load(dir)
		_, use := control.InUse(dir)
		_, holder := control.ReadHolder(dir)
		for file, err := range map[string]error{control.ClusterFile: load, control.LockFile: errors.Join(use, holder)} {
			if err == nil || !strings.HasPrefix(err.Error(), filepath.Join(dir, file)+": ") || !strings.Contains(err.Error(), what) {
				t.Errorf("%s that is a %s: error %v, want the path and the reason", file, what, err)
			}
		}
	}
}
