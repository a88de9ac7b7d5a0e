// Package shell quotes words that users paste into a shell.
package shell

import "strings"

// plain are the characters that need no quotes in any POSIX shell.
const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,"

// Quote returns word as one word of a POSIX shell. It adds quotes only if they are needed.
func Quote(word string) string {
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
