package process_test

import (
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

func clearDeathSignal() error {
	return unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0)
}

func ignoreTerm() { signal.Ignore(syscall.SIGTERM) }

func limits() (soft, hard uint64) {
	var l unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &l)
	return l.Cur, l.Max
}
