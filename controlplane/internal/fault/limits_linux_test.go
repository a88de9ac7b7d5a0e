package fault

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

func TestDescriptorLimitIsSetAndRestored(t *testing.T) {
	var before, during, after unix.Rlimit
	read := func(into *unix.Rlimit) {
		t.Helper()
		if err := unix.Getrlimit(unix.RLIMIT_NOFILE, into); err != nil {
			t.Fatal(err)
		}
	}
	read(&before)
	was, err := LimitDescriptors(os.Getpid(), before.Cur-1)
	if err != nil || was != before.Cur {
		t.Fatalf("it was %d, not %d: %v", was, before.Cur, err)
	}
	read(&during)
	if _, err := LimitDescriptors(os.Getpid(), was); err != nil {
		t.Fatal(err)
	}
	read(&after)
	if during.Cur != before.Cur-1 || during.Max != before.Max || after != before {
		t.Errorf("before %+v, during %+v, after %+v", before, during, after)
	}

	// A limit that an unprivileged process could not put back is not set.
	if before.Max < unix.RLIM_INFINITY {
		_, err := LimitDescriptors(os.Getpid(), before.Max+1)
		if err == nil || !strings.Contains(err.Error(), "over the hard limit") {
			t.Errorf("over the hard limit: %v", err)
		}
	}
}
