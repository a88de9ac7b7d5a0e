package compare

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"os"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/internal/userfile"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// ScenarioDigest is the SHA-256 of a scenario with its settings in it, and what it replays.
func ScenarioDigest(s scenario.Scenario) (string, error) {
	s.Bundle() // by which that has names of its content
	text, err := s.Resolved()
	if err != nil {
		return "", exitcode.UsageError(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text)), nil
}

// Binary is the controlplane binary that runs start.
type Binary struct {
	Digest string // its SHA-256 when it was read; empty where there is none, as a run says

	path string
	was  os.FileInfo
}

// ReadBinary reads the binary at path, or the one that is found without.
func ReadBinary(path string) (b Binary, err error) {
	if path == "" {
		if path, err = run.FindControlPlane(); err != nil {
			return b, nil
		}
	}
	f, err := userfile.Open(path, math.MaxInt64)
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

// Same is an error if another binary has taken its place. One of the same size and time is not read again: that would take of what is measured.
func (b *Binary) Same() error {
	now, err := os.Stat(b.path)
	if err != nil || now.Size() == b.was.Size() && now.ModTime().Equal(b.was.ModTime()) {
		return nil // a run says that it is not there
	}
	again, err := ReadBinary(b.path)
	if err != nil {
		return err
	}
	if again.Digest != b.Digest {
		return EndedEarlyError(b.path + " was built anew meanwhile (put back the one that it began with)")
	}
	b.was = again.was
	return nil
}
