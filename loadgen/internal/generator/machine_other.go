//go:build !linux

package generator

func readMachine() machine { return machine{} }
