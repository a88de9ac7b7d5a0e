package version

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/internal/commandline"
)

// Command returns the command `version` of a program. kubernetes and etcd are the versions that the program's planes
// run by default.
func Command(program, kubernetes, etcd string) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the versions of the program, and of the Kubernetes and etcd that it starts",
		Example: "  " + program + ` version
  ` + program + " version -o json",
		Args: cobra.NoArgs,
	}
	output := commandline.AddOutput(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		info, w := read(), cmd.OutOrStdout()
		info.Kubernetes, info.Etcd = kubernetes, etcd
		return output.Write(w, info, func() error { return info.write(w, program) })
	}
	return cmd
}

// write prints the Info as text, one fact per line.
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
