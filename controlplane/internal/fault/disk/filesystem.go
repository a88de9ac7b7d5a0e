package disk

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// OtherFileSystem finds a directory that is on another device than dir and can be written in: the
// "disk of its own" that external etcd does not share with its neighbours.
func OtherFileSystem(dir string) (string, error) {
	return otherFileSystem(dir, []candidate{
		{"/dev/shm", "/dev/shm"},
		{"$XDG_RUNTIME_DIR", os.Getenv("XDG_RUNTIME_DIR")},
		{"the directory for temporary files ($TMPDIR)", os.TempDir()},
	})
}

type candidate struct{ name, dir string }

func otherFileSystem(dir string, candidates []candidate) (string, error) {
	own, err := device(dir)
	if err != nil {
		return "", err
	}
	var lacks []string
	for _, c := range candidates {
		why := c.check(own)
		if why == nil {
			return c.dir, nil
		}
		lacks = append(lacks, fmt.Sprintf("%s: %v", c.name, why))
	}
	return "", fmt.Errorf("no other file system than that of %s can be written to (%s)", dir, strings.Join(lacks, "; "))
}

func (c candidate) check(own uint64) error {
	if c.dir == "" {
		return errors.New("not set")
	}
	other, err := device(c.dir)
	if err != nil {
		return err
	}
	if other == own {
		return errors.New("the same device")
	}
	f, err := createUnlinked(c.dir)
	if err != nil {
		return err
	}
	return f.Close()
}

func device(dir string) (uint64, error) {
	var stat unix.Stat_t
	if err := unix.Stat(dir, &stat); err != nil {
		return 0, &os.PathError{Op: "stat", Path: dir, Err: err}
	}
	return uint64(stat.Dev), nil
}
