package fsync

import (
	"strings"
	"testing"
	"time"
)

func TestIsWAL(t *testing.T) {
	for path, want := range map[string]bool{
		"/data/member/wal/0000000000000000-0000000000000000.wal": true,
		"/data/member/wal/0.tmp":                                 true,
		"/tmp/x.wal":                                             true,
		"/tmp/x.wal (deleted)":                                   true,
		"/data/member/snap/db":                                   false,
		"/data/member/wal":                                       false,
		"/tmp/walrus":                                            false,
		"":                                                       false,
		"socket:[4711]":                                          false,
	} {
		if got := isWAL(path); got != want {
			t.Errorf("isWAL(%q) = %v", path, got)
		}
	}
}

func TestDelayIsChecked(t *testing.T) {
	for want, d := range map[string]Delay{
		"delay 0s":       {},
		"delay -1s":      {Delay: -time.Second},
		"jitter -1ms":    {Delay: time.Second, Jitter: -time.Millisecond},
		"jitter 2s":      {Delay: time.Second, Jitter: 2 * time.Second},
		`files "snap"`:   {Delay: time.Second, Files: "snap"},
		`"wal" or "all"`: {Delay: time.Second, Files: "WAL"},
	} {
		if err := d.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q in it", d, err, want)
		}
	}
	for _, d := range []Delay{{Delay: 1}, {Delay: time.Second, Jitter: time.Second, Files: All}, {Delay: time.Second, Files: WAL}} {
		if err := d.check(); err != nil {
			t.Errorf("%+v: %v", d, err)
		}
	}
}
