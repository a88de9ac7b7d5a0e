// Package commandline makes both programs, loadgen and controlplane, report a mistake on the command line in one line
// with a hint.
package commandline

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stormglass/stormglass/internal/strictyaml"
)

// Strict makes root and all commands below it check their arguments and flags before they run. usage marks an error as
// bad usage. mayBeEmpty lists the flags whose value may be empty. Call Strict after you have added all commands to
// root.
func Strict(root *cobra.Command, usage func(error) error, mayBeEmpty ...string) {
	s := strict{usage, mayBeEmpty}
	root.InitDefaultCompletionCmd()
	root.InitDefaultHelpCmd()
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error { return s.usage(flagError(c, err)) })
	s.checkHelp(root)
	s.checkArguments(root)
}

type strict struct {
	usage      func(error) error
	mayBeEmpty []string
}

func (s strict) checkArguments(c *cobra.Command) {
	if c.HasSubCommands() && !c.Runnable() { // by default, cobra shows the help for any argument
		c.RunE = func(c *cobra.Command, _ []string) error { return c.Help() }
	}
	check := c.Args
	if check == nil {
		check = cobra.ArbitraryArgs
		if c.HasSubCommands() {
			check = cobra.NoArgs
		}
	}
	if c.HasSubCommands() && check(c, []string{"word"}) != nil {
		if c.Annotations == nil {
			c.Annotations = map[string]string{}
		}
		c.Annotations[group] = group
	}
	if !c.DisableFlagParsing { // if flag parsing is disabled, the arguments belong to another program
		c.Args = func(c *cobra.Command, args []string) error {
			err := s.unusable(c, args)
			if err == nil {
				err = argumentError(c, args, check(c, args))
			}
			if err != nil {
				return s.usage(err)
			}
			return nil
		}
	}
	for _, sub := range c.Commands() {
		s.checkArguments(sub)
	}
}

// unusable refuses numbers that are not finite, and flags and arguments with an empty value, such as --kubeconfig
// "$UNSET". Without this check, the command would behave as if the flag were missing, and might act on another cluster.
func (s strict) unusable(c *cobra.Command, args []string) error {
	var errs []error
	c.Flags().Visit(func(f *pflag.Flag) {
		if n, err := c.Flags().GetFloat64(f.Name); err == nil && (math.IsNaN(n) || math.IsInf(n, 0)) {
			errs = append(errs, fmt.Errorf("--%s %g is not a finite number (write a number such as 1 or 0.5)", f.Name, n))
		}
		empty := f.Value.Type() == "string" && f.Value.String() == ""
		if list, ok := f.Value.(pflag.SliceValue); ok {
			empty = slices.Contains(list.GetSlice(), "") || len(list.GetSlice()) == 0
		}
		if empty && !slices.Contains(s.mayBeEmpty, f.Name) {
			errs = append(errs, fmt.Errorf("--%s is empty (give it a value, or leave it out)", f.Name))
		}
	})
	if at := slices.Index(args, ""); at >= 0 {
		errs = append(errs, fmt.Errorf("argument %d is empty (usage: %s)", at+1, c.UseLine()))
	}
	return errors.Join(errs...)
}

// argumentError adds a hint to err, the error of a command's check of its arguments. If err is nil, argumentError still
// refuses a first argument that is probably a mistyped subcommand.
func argumentError(c *cobra.Command, args []string, err error) error {
	if err == nil {
		if c.HasSubCommands() && !isGroup(c) && len(args) > 0 && nearSubcommand(c, args[0]) {
			return unknownCommand(c, args[0])
		}
		return nil
	}
	if isGroup(c) && len(args) > 0 {
		return unknownCommand(c, args[0])
	}
	if f := optionalValue(c, args); f != nil {
		what, _ := pflag.UnquoteUsage(f)
		return fmt.Errorf("%s takes no argument %q (write the %s of --%s after =: --%s=%s)", c.CommandPath(), lastAddress(args), what, f.Name, f.Name, lastAddress(args))
	}
	switch text := err.Error(); { // cobra has no error types, so compare its messages
	case strings.HasPrefix(text, "unknown command "):
		return fmt.Errorf("%s takes no argument %q (usage: %s)", c.CommandPath(), args[0], c.UseLine())
	case strings.HasPrefix(text, "accepts "), strings.HasPrefix(text, "requires "):
		return wrongArguments(c, args)
	}
	return err
}

// optionalValue returns the flag whose optional value was written as a separate argument, or nil if there is no such
// flag.
func optionalValue(c *cobra.Command, args []string) (found *pflag.Flag) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.NoOptDefVal != "" && f.Value.Type() != "bool" && f.Value.String() == f.NoOptDefVal && lastAddress(args) != "" {
			found = f
		}
	})
	return found
}

// lastAddress returns the last argument that contains a colon and may therefore be HOST:PORT. It returns "" if no
// argument contains a colon.
func lastAddress(args []string) string {
	for _, arg := range slices.Backward(args) {
		if strings.Contains(arg, ":") {
			return arg
		}
	}
	return ""
}

func unknownCommand(c *cobra.Command, word string) error {
	hint := fmt.Sprintf("`%s --help` lists them", c.CommandPath())
	if near := nearestCommand(c, word); near != "" {
		hint = fmt.Sprintf("did you mean %q?", near)
	}
	return fmt.Errorf("unknown command %q for %q (%s)", word, c.CommandPath(), hint)
}

// nearestCommand returns the command that `word` probably means: a subcommand with a similar name, a subcommand of
// which `word` is a known synonym, or a command elsewhere in the program with exactly that name.
func nearestCommand(c *cobra.Command, word string) string {
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() || sub.Name() == "help" { // for cobra, the help command is not available
			names = append(names, sub.Name())
			if slices.Contains(sub.SuggestFor, word) {
				return sub.Name()
			}
		}
	}
	root := c.Root()
	if exact := pathOf(root, word); exact != "" {
		return strings.TrimPrefix(exact, root.Name()+" ")
	}
	return cmp.Or(strictyaml.Suggest(word, names), containing(word, names))
}

func containing(word string, names []string) string {
	var with []string
	for _, name := range names {
		if len(word) > 2 && strings.Contains(name, strings.ToLower(word)) {
			with = append(with, name)
		}
	}
	if len(with) != 1 {
		return ""
	}
	return with[0]
}

// pathOf returns the path of the first available command below c with the given name, or "" if none exists.
func pathOf(c *cobra.Command, name string) string {
	for _, sub := range c.Commands() {
		if !sub.IsAvailableCommand() {
			continue
		}
		if sub.Name() == name {
			return sub.CommandPath()
		}
		if path := pathOf(sub, name); path != "" {
			return path
		}
	}
	return ""
}

// checkHelp makes the command `help` refuse unknown commands.
func (s strict) checkHelp(root *cobra.Command) {
	for _, c := range root.Commands() {
		if c.Name() != "help" {
			continue
		}
		c.Run = nil
		c.RunE = func(_ *cobra.Command, words []string) error {
			about, rest, err := root.Find(words)
			if err != nil {
				return s.usage(err)
			}
			if len(rest) > 0 {
				return s.usage(unknownCommand(about, rest[0]))
			}
			return about.Help()
		}
	}
}

// group is the annotation that marks a command with subcommands and without arguments.
const group = "group"

func isGroup(c *cobra.Command) bool { return c.Annotations[group] != "" }

// nearSubcommand reports whether a word differs only by a few letters from a subcommand's name.
func nearSubcommand(c *cobra.Command, word string) bool {
	var names []string
	for _, sub := range c.Commands() {
		names = append(names, sub.Name())
	}
	return strictyaml.Suggest(word, names) != ""
}

// flagError rewords the errors of pflag and adds hints.
func flagError(c *cobra.Command, err error) error {
	if words := c.Flags().Args(); isGroup(c) && len(words) > 0 {
		return unknownCommand(c, words[0]) // the unknown command is the mistake, not the flag
	}
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	var syntax *pflag.InvalidSyntaxError
	switch {
	case errors.As(err, &unknown):
		hint := fmt.Sprintf("`%s --help` shows the flags", c.CommandPath())
		if near := nearestFlag(c, unknown); near != "" {
			hint = fmt.Sprintf("did you mean --%s?", near)
		}
		return fmt.Errorf("%w (%s)", err, hint)
	case errors.As(err, &missing):
		what, _ := pflag.UnquoteUsage(missing.GetFlag())
		return fmt.Errorf("--%s needs a value (write --%s %s)", missing.GetFlag().Name, missing.GetFlag().Name, strings.ToUpper(what))
	case errors.As(err, &invalid):
		return fmt.Errorf("--%s %q: %w", invalid.GetFlag().Name, invalid.GetValue(), wrongValue(invalid))
	case errors.As(err, &syntax):
		return fmt.Errorf("%s is not a flag (usage: %s)", syntax.GetSpecifiedFlag(), c.UseLine())
	}
	return err
}

func nearestFlag(c *cobra.Command, unknown *pflag.NotExistError) string {
	var names []string
	c.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	if word := unknown.GetSpecifiedShortnames(); word != "" { // -count
		word, _, _ = strings.Cut(word, "=")
		return strictyaml.Suggest(word, names)
	}
	word := unknown.GetSpecifiedName()
	if near := strictyaml.Suggest(word, names); near != "" {
		return near
	}
	return containing(word, names)
}
