// Package shell writes words for a person to paste into a shell.
package shell

import "strings"

// plain are the characters that mean themselves in every POSIX shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,"

// Quote returns word as one word of a POSIX shell, quoted only if it must be.
func Quote(word string) string {
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
