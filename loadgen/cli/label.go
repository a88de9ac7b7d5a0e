package cli

import (
	"github.com/spf13/pflag"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/result"
)

// labelFlag holds the values of --label.
type labelFlag []string

func (l *labelFlag) add(flags *pflag.FlagSet) {
	flags.StringArrayVar((*[]string)(l), "label", nil, "record the label `NAME=VALUE` in the results, for example team=core (repeatable)")
}

// into sets *labels to the labels of the flag. It returns a usage error if a label is invalid.
func (l *labelFlag) into(labels *map[string]string) (err error) {
	if *labels, err = result.ParseLabels(*l); err != nil {
		return exitcode.Usagef("--label: %w", err)
	}
	return nil
}
