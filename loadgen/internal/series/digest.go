package series

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// ScenarioDigest returns the SHA-256 of a resolved scenario. It covers the contents of replayed files.
func ScenarioDigest(s scenario.Scenario) (string, error) {
	s.Bundle() // identifies replayed files by their content
	text, err := s.Resolved()
	if err != nil {
		return "", exitcode.UsageError(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text)), nil
}

// Binary is the controlplane binary of a series of runs.
type Binary struct {
	Digest string // SHA-256 of the file when it was read; empty if the file is missing (the run reports this later)

	path string
	was  os.FileInfo
}

// largestBinary is the maximum size of a controlplane binary, in bytes. It is several times the usual size.
const largestBinary = 2 << 30

// readBinary reads the binary at path. If path is empty, it searches for the binary. A missing binary is not an
// error; its Digest is empty.
func readBinary(path string) (b Binary, err error) {
	if path == "" {
		if path, err = run.FindControlPlane(); err != nil {
			return b, nil
		}
	}
	f, err := userfile.Open(path, largestBinary)
	if err != nil {
		return b, nil
	}
	defer f.Close()
	if b.was, err = f.Stat(); err != nil {
		return b, exitcode.EnvironmentError(err)
	}
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return b, exitcode.EnvironmentError(err)
	}
	b.path, b.Digest = path, hex.EncodeToString(h.Sum(nil))
	return b, nil
}

// Same returns an error if the binary has changed since it was read. If size and modification time are unchanged, Same
// does not read the file again, because reading would disturb the measurement.
func (b *Binary) Same() error {
	now, err := os.Stat(b.path)
	if err != nil || now.Size() == b.was.Size() && now.ModTime().Equal(b.was.ModTime()) {
		return nil // the run reports a missing binary
	}
	again, err := readBinary(b.path)
	if err != nil {
		return err
	}
	if again.Digest != b.Digest {
		return EndedEarlyError(b.path + " was rebuilt during the runs (restore the original build)")
	}
	b.was = again.was
	return nil
}
