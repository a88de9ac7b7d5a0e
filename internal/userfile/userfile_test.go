package userfile

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

func TestReadTakesRegularFilesOnly(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(at("file"), []byte("12345678"), 0o600))
	must(os.WriteFile(at("large"), []byte("123456789"), 0o600))
	must(os.Symlink("file", at("link")))
	must(os.Symlink("loop", at("loop")))
	must(syscall.Mkfifo(at("pipe"), 0o600))
	socket, err := net.Listen("unix", at("socket"))
	must(err)
	defer socket.Close()
	for name, want := range map[string]string{
		"file": "", "link": "",
		"large": "it is larger than", "pipe": "it is a pipe, not a regular file", "socket": "it is a device or socket, not a regular file",
		".": "it is a directory, not a file", "none": "no such file or directory", "loop": "too many levels of symbolic links",
		"../../../../../../../../../../dev/zero": "it is a device or socket, not a regular file",
	} {
		got, err := Read(at(name), 8)
		switch {
		case want == "" && (err != nil || string(got) != "12345678"):
			t.Errorf("%s: %q, %v", name, got, err)
		case want != "" && (err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), dir)):
			t.Errorf("%s: %q, %v; want error %s", name, got, err, want)
		}
		if check := Check(at(name), 8); (check == nil) != (err == nil) {
			t.Errorf("%s: Check = %v, but Read = %v", name, check, err)
		}
	}
	if _, err := Read(at("none"), 8); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
}

// endless is an input without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestStdinIsBoundedAndInterruptible(t *testing.T) {
	got, err := Stdin(t.Context(), bytes.NewReader([]byte("nodes")), 5)
	if string(got) != "nodes" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := Stdin(t.Context(), endless{}, 1<<20); err == nil || err.Error() != "it is larger than 1 MiB" {
		t.Errorf("without end: %v", err)
	}
	silent, writer := io.Pipe()
	defer writer.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("interrupted"))
	if _, err := Stdin(ctx, silent, 5); err == nil || err.Error() != "interrupted" {
		t.Errorf("interrupted: %v", err)
	}
}
