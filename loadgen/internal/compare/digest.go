package compare

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/scenario"
)

// ScenarioDigest is the SHA-256 of a scenario with its settings in it.
func ScenarioDigest(s scenario.Scenario) (string, error) {
	text, err := s.Resolved()
	if err != nil {
		return "", exitcode.UsageError(err)
	}
	return fmt.Sprintf("%x", sha256.Sum256(text)), nil
}

// BuildDigest is the SHA-256 of the controlplane binary that a run starts; empty where there is none, as the run says.
func BuildDigest(path string) (string, error) {
	if path == "" {
		var err error
		if path, err = run.FindControlPlane(); err != nil {
			return "", nil
		}
	}
	f, err := os.Open(path)
	if err != nil {
		return "", nil
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", exitcode.EnvironmentError(err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
