package version

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"
)

// Command is the command `version` of a program whose planes have these releases of Kubernetes and etcd. usage
// marks an error as the user's.
func Command(program, kubernetes, etcd string, usage func(error) error) *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print which version this is, and of which Kubernetes and etcd its planes are",
		Example: "  " + program + ` version
  ` + program + " version -o json",
		Args: cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if output != "text" && output != "json" {
				return usage(fmt.Errorf("--output %q is unknown (text or json)", output))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			info := read()
			info.Kubernetes, info.Etcd = kubernetes, etcd
			if output == "json" {
				encoder := json.NewEncoder(cmd.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(info)
			}
			return info.write(cmd.OutOrStdout(), program)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "`format` of the result on standard output: text or json")
	return cmd
}

// write prints the information as text, a line for each fact.
func (i Info) write(to io.Writer, program string) error {
	source := cmp.Or(i.Commit, "unknown")
	if i.Dirty {
		source += ", with changes that are not committed"
	}
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	for _, row := range [][2]string{
		{program, i.Version}, {"commit", source}, {"date", cmp.Or(i.Date, "unknown")},
		{"go", i.GoVersion + " " + i.Platform}, {"kubernetes", i.Kubernetes}, {"etcd", i.Etcd},
	} {
		fmt.Fprintf(w, "%s\t%s\n", row[0], row[1])
	}
	return w.Flush()
}
