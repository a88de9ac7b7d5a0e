//go:build !linux

package userfile

// ofKernel returns false. The package can detect file systems whose contents the kernel generates only on Linux.
func ofKernel(string) bool { return false }
