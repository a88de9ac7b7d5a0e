package cli

import "golang.org/x/sys/unix"

const (
	getTermios  = unix.TCGETS
	setTermios  = unix.TCSETS
	noCharacter = 0 // value that turns off a control character, such as Ctrl-Z
)
