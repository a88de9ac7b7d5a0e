package commandline

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stormglass/stormglass/internal/strictyaml"
)

// flagError puts pflag's errors in our words, with the flag's name first.
func flagError(c *cobra.Command, err error) error {
	if words := c.Flags().Args(); c.HasSubCommands() && len(words) > 0 {
		return unknownCommand(c, words[0]) // whose flag it is
	}
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
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

func wrongValue(e *pflag.InvalidValueError) error {
	for of, text := range map[string]string{
		"int": "is no whole number", "uint": "is no whole number of 0 or more",
		"duration": "is no length of time (write it as 30s or 5m)", "bool": "is neither true nor false",
		"stringToString": "is not NAME=VALUE",
	} {
		if strings.TrimSuffix(e.GetFlag().Value.Type(), "64") == of {
			return errors.New(text)
		}
	}
	return e.Unwrap() // our own flag types speak for themselves
}
