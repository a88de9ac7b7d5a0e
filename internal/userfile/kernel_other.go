//go:build !linux

package userfile

// ofKernel returns false: only on Linux does this package know file systems whose contents the kernel generates.
func ofKernel(string) bool { return false }
