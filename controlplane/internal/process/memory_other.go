//go:build !linux

package process

// AvailableMemory is zero: the system does not tell.
func AvailableMemory() uint64 { return 0 }

// OOMKills is zero: the system does not tell.
func OOMKills() uint64 { return 0 }
