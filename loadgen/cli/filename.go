package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

// addFilenameFlag adds the flag -f to a command with the argument NAME|FILE. Users of kubectl expect this flag.
func addFilenameFlag(cmd *cobra.Command) {
	file := cmd.Flags().StringP("filename", "f", "", "scenario `file`, instead of the argument")
	argument, run := cmd.Args, cmd.RunE
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if *file == "" {
			return argument(cmd, args)
		}
		return cobra.NoArgs(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case *file == "":
		case *file == "-" || strings.ContainsRune(*file, '/'):
			args = []string{*file}
		default: // a file, even if a built-in scenario has the same name
			args = []string{"./" + *file}
		}
		return run(cmd, args)
	}
}
