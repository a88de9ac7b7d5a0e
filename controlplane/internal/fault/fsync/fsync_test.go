package fsync

import "testing"

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
			t.Errorf("isWAL(%q) = %v, want %v", path, got, want)
		}
	}
}
