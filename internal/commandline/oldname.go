package commandline

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// OldName keeps `old` as a hidden alias of a flag of c. The first use of the alias prints a warning to standard error.
// pflag's MarkDeprecated would require a flag with a separate value, and cobra could write the warning to standard
// output.
func OldName(c *cobra.Command, old, name string) {
	flags := c.Flags()
	if c.PersistentFlags().Lookup(name) != nil {
		flags = c.PersistentFlags()
	}
	f := *flags.Lookup(name)
	f.Name, f.Hidden, f.Value = old, true, &oldName{f.Value, name, &f, flags, c}
	flags.AddFlag(&f)
}

type oldName struct {
	pflag.Value
	name  string
	old   *pflag.Flag
	flags *pflag.FlagSet
	c     *cobra.Command
}

func (o *oldName) Set(value string) error {
	if !o.old.Changed {
		fmt.Fprintf(o.c.ErrOrStderr(), "%s: --%s is deprecated (use --%s)\n", o.c.Root().Name(), o.old.Name, o.name)
	}
	return errors.Unwrap(o.flags.Set(o.name, value)) // without the flag's name: the caller adds it
}
