//go:build !race

package h2conn

// rawRead and rawWrite do nothing in a build without the race detector.
func rawRead()  {}
func rawWrite() {}
