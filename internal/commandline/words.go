package commandline

import (
	"encoding/csv"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// wrongArguments returns an error that names the missing arguments or the first superfluous argument. The usage line
// contains the names of the arguments; cobra only counts arguments.
func wrongArguments(c *cobra.Command, args []string) error {
	needed, most := argumentNames(c)
	switch {
	case len(args) < len(needed):
		return fmt.Errorf("%s needs %s (usage: %s)", c.CommandPath(), strings.Join(needed[len(args):], " and "), c.UseLine())
	case most >= 0 && len(args) > most:
		return fmt.Errorf("%s takes no argument %q (usage: %s)", c.CommandPath(), args[most], c.UseLine())
	}
	return fmt.Errorf("%s does not take %d arguments (usage: %s)", c.CommandPath(), len(args), c.UseLine())
}

// argumentNames returns the names of the required arguments in a command's usage line, and the maximum number of arguments; -1
// means unlimited. In a usage line, DIR is one argument, DIR... one or more, [DIR] at most one, and [DIR...] any number.
func argumentNames(c *cobra.Command) (needed []string, most int) {
	words := strings.Fields(c.Use)[1:]
	for i, word := range words {
		if word == "|" || word == "<" { // an alternative form follows, or a file for standard input
			break
		}
		flag := strings.HasPrefix(strings.TrimPrefix(word, "["), "-")
		value := i > 0 && strings.HasPrefix(strings.TrimPrefix(words[i-1], "["), "-")
		if flag || value || word == "[flags]" {
			continue
		}
		if most >= 0 {
			most++
		}
		if strings.HasSuffix(strings.TrimSuffix(word, "]"), "...") {
			most = -1
		}
		if !strings.HasPrefix(word, "[") {
			needed = append(needed, strings.TrimSuffix(word, "..."))
		}
	}
	return needed, most
}

// wrongValue rewords the error of a flag whose value is not valid.
func wrongValue(e *pflag.InvalidValueError) error {
	typ := e.GetFlag().Value.Type()
	each := strings.TrimSuffix(strings.TrimSuffix(typ, "Slice"), "Array")
	for of, text := range map[string]string{
		"int": "is not a whole number", "uint": "is not a whole number of 0 or more", "float": "is not a number", "count": "is not a whole number",
		"duration": "is not a duration (write it as 30s or 5m)", "bool": "is neither true nor false",
		"string": "is not a comma-separated list (close its quotes)", "stringTo": "is not NAME=VALUE",
		"ip": "is not an IP address", "ipNet": "is not a network (write it as 10.0.0.0/16)",
	} {
		if strings.TrimRight(each, "0123456789") == of || of == "stringTo" && strings.HasPrefix(typ, of) {
			if each != typ && of != "string" {
				text = "contains an item that " + text
			}
			return errors.New(text)
		}
	}
	return Plain(e.Unwrap()) // the flag types of Stormglass return readable errors
}

// Plain rewords errors of strconv, net/url and encoding/csv that name functions or positions. It returns other errors
// unchanged.
func Plain(err error) error {
	if number, ok := errors.AsType[*strconv.NumError](err); ok {
		if errors.Is(number.Err, strconv.ErrRange) {
			return errors.New("is too large")
		}
		return errors.New("is not a number")
	}
	if address, ok := errors.AsType[*url.Error](err); ok && address.Op == "parse" {
		return fmt.Errorf("is not a URL: %w", address.Err)
	}
	if _, ok := errors.AsType[*csv.ParseError](err); ok {
		return errors.New("is not a comma-separated list (close its quotes)")
	}
	return err
}
