package run

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"strings"
)

// Build returns the program's version. If different builds can have that version (a development or modified build),
// Build appends the first digits of the SHA-256 of the program file.
func Build() string {
	v := Version()
	if v != "(devel)" && !strings.Contains(v, "dirty") {
		return v
	}
	if sum := ownSum(); sum != "" {
		return v + "-" + sum
	}
	return v
}

// ownSum returns the first 6 bytes of the program file's SHA-256 in hex. It returns "" if the file cannot be read.
func ownSum() string {
	path, err := os.Executable()
	if err != nil {
		return ""
	}
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}
