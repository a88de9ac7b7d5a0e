package cli

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stormglass/stormglass/internal/exitcode"
)

// Every flag of every command is refused, before anything starts, if its value is empty or of another type, or if its name has
// an extra letter. The error is one line and names the flag.
func TestInvalidFlagIsNamed(t *testing.T) {
	for _, c := range commands(newRoot(nil)) {
		words := append(strings.Fields(c.CommandPath())[1:], arguments(c)...)
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" || f.Name == "version" || f.Hidden { // a hidden flag is the old name of another flag
				return
			}
			if len(f.Name) > 1 { // a name of one letter has too many similar names
				refused(t, append(words, "--"+f.Name+"x=1"), "(did you mean --"+f.Name+"?)")
			}
			switch f.Value.Type() {
			case "int", "float64", "duration", "bool", "stringToString", "percent", "age", "size":
				refused(t, append(words, "--"+f.Name+"=no such"), `loadgen: --`+f.Name+` "no such": is n`)
			case "string", "stringArray", "stringSlice":
				if f.Name != "summary" && f.Name != "junit" {
					refused(t, append(words, "--"+f.Name+"="), "loadgen: --"+f.Name+" is empty")
				}
			case "form":
				refused(t, append(words, "--"+f.Name+"=xml"), `loadgen: --`+f.Name+` "xml": is unknown (text, json`)
			default:
				t.Errorf("%s --%s: this test has no value for flags of type %s", c.CommandPath(), f.Name, f.Value.Type())
			}
		})
	}
}

// For every mistyped command, the error suggests the right one.
func TestMistypedCommandIsSuggested(t *testing.T) {
	for _, c := range commands(newRoot(nil)) {
		words := strings.Fields(c.CommandPath())[1:]
		if len(words) == 0 || c.Hidden {
			continue
		}
		last := words[len(words)-1]
		typed := append(words[:len(words)-1:len(words)-1], last+"q")
		refused(t, typed, `(did you mean "`+last+`"?)`)
		refused(t, append([]string{"help"}, typed...), `(did you mean "`+last+`"?)`)
	}
}

// For a missing or extra argument, the error of every command names the argument and shows the usage line.
func TestWrongArgumentsAreNamed(t *testing.T) {
	for _, c := range commands(newRoot(nil)) {
		for _, args := range [][]string{nil, strings.Fields("a b c d e f g h i")} {
			if c.Args == nil {
				continue
			}
			err := c.Args(c, args)
			if err == nil || strings.HasPrefix(err.Error(), "unknown command ") {
				continue
			}
			plain := strings.Contains(err.Error(), " needs ") || strings.Contains(err.Error(), " takes no argument ")
			if !plain || !strings.Contains(err.Error(), "(usage: "+c.CommandPath()) {
				t.Errorf("%s with %d arguments: %v", c.CommandPath(), len(args), err)
			}
		}
	}
}

// commands returns c and all its subcommands.
func commands(c *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{c}
	for _, sub := range c.Commands() {
		all = append(all, commands(sub)...)
	}
	return all
}

// arguments returns as many arguments as a command needs.
func arguments(c *cobra.Command) []string {
	var args []string
	for c.Args(c, args) != nil && len(args) < 3 {
		args = append(args, "nowhere")
	}
	return args
}

func refused(t *testing.T, args []string, want string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // valid flags do not start anything either
	code := execute(ctx, args, strings.NewReader(""), &stdout, &stderr)
	if code != exitcode.Usage || !strings.Contains(stderr.String(), want) || stdout.Len() > 0 {
		t.Errorf("loadgen %s: exit %d, want 2 and %q\n%s%s", strings.Join(args, " "), code, want, &stdout, &stderr)
	}
}
