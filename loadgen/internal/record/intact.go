package record

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stormglass/stormglass/internal/userfile"
)

const (
	// mostSegment bounds a file of an archive: Prometheus' largest have 512 MiB.
	mostSegment = 1 << 30
	// deepest is how deep an archive is: BLOCK/chunks/000001. A loop of links ends
	// there.
	deepest = 3
)

// checkFiles looks at the files of an archive before Prometheus' TSDB opens them:
// it would wait for a writer of a FIFO, and copy a file of any size.
func checkFiles(dir string) error { return checkBelow(dir, "", deepest) }

func checkBelow(dir, name string, depth int) error {
	at := filepath.Join(dir, name)
	entries, err := os.ReadDir(at)
	if err != nil {
		return pathless(name, err)
	}
	for _, e := range entries {
		below := filepath.Join(name, e.Name())
		info, err := os.Stat(filepath.Join(dir, below))
		switch {
		case err != nil:
			return pathless(below, err)
		case info.IsDir() && depth > 0:
			err = checkBelow(dir, below, depth-1)
		default:
			err = pathless(below, userfile.Check(filepath.Join(dir, below), mostSegment))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// pathless names the file in the archive instead of the path in an error of the os
// package.
func pathless(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s%w", strings.TrimPrefix(name+": ", ": "), userfile.Cause(err))
}

// survive makes an error of a panic: Prometheus' TSDB trusts what its checksums do
// not cover, and reads past the end of what was cut off.
func survive(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("it cannot be read: %v", p)
	}
}
