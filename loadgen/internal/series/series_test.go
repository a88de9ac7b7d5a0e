package series

import (
	"errors"
	"testing"
)

func TestEndedEarlyIsOneLine(t *testing.T) {
	err := errors.New("pair 1, side B: etcd-0 died; from its log, a/etcd-0.log:\n{\"level\":\"info\"}\n{\"level\":\"fatal\"}")
	if got, want := EndedEarly(err), "ended early: pair 1, side B: etcd-0 died; from its log, a/etcd-0.log"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
