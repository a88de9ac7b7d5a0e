//go:build !linux

package userfile

// ofKernel is false: such file systems are known on Linux only.
func ofKernel(string) bool { return false }
