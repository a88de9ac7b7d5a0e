package cli

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// rawTerminal is the controlling terminal while it shows a page. Line editing and echo are off. Ctrl-C still sends a
// signal. Ctrl-Z and Ctrl-\ do nothing, because a stopped process cannot measure.
type rawTerminal struct {
	file    *os.File
	before  unix.Termios
	columns int // width of the last frame in characters
	rows    int
}

const (
	enterPage = "\x1b[?1049h\x1b[?25l\x1b[?2004h\x1b[2J"
	leavePage = "\x1b[?2004l\x1b[?25h\x1b[?1049l"
)

// openTerminal opens the controlling terminal for a page. It returns an error if there is no terminal, if the terminal
// is too small, or if loadgen is a background job.
func openTerminal() (*rawTerminal, error) {
	file, err := os.OpenFile("/dev/tty", os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	t := &rawTerminal{file: file}
	if err := t.take(); err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return t, nil
}

func (t *rawTerminal) take() error {
	columns, rows := t.size()
	if columns < minColumns || rows < minRows {
		return fmt.Errorf("a terminal of %d by %d is too small", columns, rows)
	}
	return t.control(func(fd int) error {
		group, err := unix.IoctlGetInt(fd, unix.TIOCGPGRP)
		if err != nil {
			return err
		}
		if group != unix.Getpgrp() {
			return errors.New("loadgen runs in the background")
		}
		before, err := unix.IoctlGetTermios(fd, getTermios)
		if err != nil {
			return err
		}
		t.before = *before
		now := *before
		now.Lflag &^= unix.ICANON | unix.ECHO | unix.ECHONL
		now.Iflag &^= unix.IXON
		now.Cc[unix.VMIN], now.Cc[unix.VTIME] = 1, 0
		now.Cc[unix.VSUSP], now.Cc[unix.VQUIT] = noCharacter, noCharacter
		if err := unix.IoctlSetTermios(fd, setTermios, &now); err != nil {
			return err
		}
		_, err = t.file.WriteString(enterPage)
		return err
	})
}

// control calls f with the file descriptor of the terminal. Unlike File.Fd, it leaves the descriptor non-blocking, so
// reads can be canceled.
func (t *rawTerminal) control(f func(fd int) error) error {
	conn, err := t.file.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = conn.Control(func(fd uintptr) { failed = f(int(fd)) })
	return errors.Join(err, failed)
}

// size returns the size of the terminal in characters, or 0 if unknown.
func (t *rawTerminal) size() (columns, rows int) {
	_ = t.control(func(fd int) error { // on an error, both remain 0
		size, err := unix.IoctlGetWinsize(fd, unix.TIOCGWINSZ)
		if err == nil {
			columns, rows = int(size.Col), int(size.Row)
		}
		return err
	})
	return columns, rows
}

// draw replaces the previous frame with a new frame, in one write. An error means that the terminal no longer exists.
func (t *rawTerminal) draw(frame []string, columns, rows int) error {
	var b strings.Builder
	b.WriteString("\x1b[?2026h\x1b[H") // synchronized output, if the terminal supports it
	if columns != t.columns || rows != t.rows {
		t.columns, t.rows = columns, rows
		b.WriteString("\x1b[2J")
	}
	for i, l := range frame {
		if i > 0 {
			b.WriteString("\r\n")
		}
		b.WriteString(l + "\x1b[K")
	}
	b.WriteString("\x1b[J\x1b[?2026l")
	_, err := t.file.WriteString(b.String())
	return err
}

// restore resets the terminal to its earlier state and closes it. Blocked reads return.
func (t *rawTerminal) restore() error {
	_, err := t.file.WriteString(leavePage)
	err = errors.Join(err, t.control(func(fd int) error { return unix.IoctlSetTermios(fd, setTermios, &t.before) }))
	return errors.Join(err, t.file.Close())
}
