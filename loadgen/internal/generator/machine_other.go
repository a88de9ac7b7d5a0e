//go:build !linux

package generator

func readMachine() usage { return usage{} }
