package userfile

import (
	"strings"
	"testing"
)

// stat(2) reports files in /proc as regular and empty, but reading /proc/kmsg never ends.
func TestFilesOfTheKernelAreRefused(t *testing.T) {
	for _, path := range []string{"/proc/kmsg", "/proc/self/environ", "/sys/kernel/notes"} {
		if _, err := Read(path, Text); err == nil || !strings.Contains(err.Error(), "the kernel generates its content") && !strings.Contains(err.Error(), "no such file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
