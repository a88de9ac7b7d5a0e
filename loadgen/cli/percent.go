package cli

import (
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// percent is a flag value from 0 to 1, written as a percentage such as 5%.
type percent float64

func (p *percent) String() string { return strconv.FormatFloat(100*float64(*p), 'f', -1, 64) + "%" }
func (p *percent) Type() string   { return "percent" }

func (p *percent) Set(text string) error {
	number, ok := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(number, 64)
	if !ok || err != nil || !(v >= 0 && v <= 100) {
		return errors.New("is not a percentage (write a value from 0% to 100%, for example 5%)")
	}
	*p = percent(v / 100)
	return nil
}

func percentVar(flags *pflag.FlagSet, into *float64, name, usage string) {
	flags.Var((*percent)(into), name, usage)
}
