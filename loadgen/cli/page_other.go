//go:build !linux

package cli

import "golang.org/x/sys/unix"

const (
	getTermios  = unix.TIOCGETA
	setTermios  = unix.TIOCSETA
	noCharacter = 0xff // value that turns off a control character, such as Ctrl-Z
)
