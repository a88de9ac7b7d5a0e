// Package userfile reads files that a user specifies or may have changed. It reads only regular files and standard
// input, up to a maximum size: no file can block the program or fill its memory.
package userfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// The maximum sizes of files in bytes. Each is much larger than any useful file of its kind.
const (
	Text   = 4 << 20   // maximum size of scenarios, rules, configuration and keys
	Replay = 256 << 20 // maximum size of recorded request times that a run replays
)

// Read returns the content of a regular file of at most limit bytes. The errors do not contain the path of the file.
func Read(path string, limit int64) ([]byte, error) {
	f, err := Open(path, limit)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return readAll(f, limit)
}

// Check performs the checks of Read and opens the file, but does not read it.
func Check(path string, limit int64) error {
	f, err := Open(path, limit)
	if err != nil {
		return err
	}
	return f.Close()
}

// Stdin reads standard input to its end. It fails if there are more than limit bytes, or if ctx ends first.
func Stdin(ctx context.Context, stdin io.Reader, limit int64) ([]byte, error) {
	type answer struct {
		data []byte
		err  error
	}
	done := make(chan answer, 1)
	go func() { // this goroutine outlives Stdin if ctx ends first, because a read cannot be interrupted
		data, err := readAll(stdin, limit)
		done <- answer{data, err}
	}()
	select {
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case a := <-done:
		return a.data, a.err
	}
}

// Open opens a file with the checks of Read. Use it if the whole file should not be in memory.
func Open(path string, limit int64) (*os.File, error) {
	info, err := os.Stat(path) // check before opening, because opening a device may have an effect
	if err != nil {
		return nil, Cause(err)
	}
	if err := regular(info, limit); err != nil {
		return nil, err
	}
	if ofKernel(path) {
		return nil, errors.New("not a regular file: the kernel generates its content")
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0) // do not block if a pipe has replaced the file
	if err != nil {
		return nil, Cause(err)
	}
	if info, err = f.Stat(); err == nil {
		err = regular(info, limit)
	}
	if err != nil {
		f.Close()
		return nil, Cause(err)
	}
	return f, nil
}

func regular(info fs.FileInfo, limit int64) error {
	switch mode := info.Mode(); {
	case mode.IsDir():
		return errors.New("it is a directory, not a file")
	case mode&fs.ModeNamedPipe != 0:
		return errors.New("it is a pipe, not a regular file")
	case !mode.IsRegular():
		return errors.New("it is a device or socket, not a regular file")
	case info.Size() > limit:
		return tooLarge(limit)
	}
	return nil
}

func readAll(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, Cause(err)
	}
	if int64(len(data)) > limit {
		return nil, tooLarge(limit)
	}
	return data, nil
}

func tooLarge(limit int64) error { return fmt.Errorf("it is larger than %d MiB", limit>>20) }

// Cause returns the cause of an error of package os, without the operation and the paths. It returns other errors unchanged.
func Cause(err error) error {
	var pathErr *fs.PathError
	var linkErr *os.LinkError
	switch {
	case errors.As(err, &pathErr):
		return pathErr.Err
	case errors.As(err, &linkErr):
		return linkErr.Err
	}
	return err
}
