package commandline

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stormglass/stormglass/internal/terminal"
)

// The keys of annotations of flags: heading is for the heading of a flag in the help, kubectls for flags of kubectl.
const (
	heading  = "heading"
	kubectls = "kubectl"
)

// SetHelp makes the help of root and of its commands show flags under the headings set by Heading, wrapped to the width
// of the terminal.
func SetHelp(root *cobra.Command) {
	cobra.AddTemplateFunc("flags", flagUsages)
	root.SetUsageTemplate(strings.NewReplacer(
		"Flags:\n{{.LocalFlags.FlagUsages | trimTrailingWhitespaces}}", "{{flags `Flags` .LocalFlags}}",
		"Global Flags:\n{{.InheritedFlags.FlagUsages | trimTrailingWhitespaces}}", "{{flags `Global Flags` .InheritedFlags}}",
	).Replace(root.UsageTemplate()))
}

// Execute runs root. Unlike root.ExecuteContext, it returns an error if the help cannot be written.
func Execute(ctx context.Context, root *cobra.Command) error {
	var failed error
	help := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		var text bytes.Buffer
		out := c.OutOrStdout()
		c.SetOut(&text)
		help(c, args)
		c.SetOut(out)
		_, failed = text.WriteTo(out)
	})
	if err := root.ExecuteContext(ctx); err != nil {
		return err
	}
	return failed
}

// Group adds commands to root under a heading of the root's help.
func Group(root *cobra.Command, title string, commands ...*cobra.Command) {
	root.AddGroup(&cobra.Group{ID: title, Title: title + ":"})
	for _, c := range commands {
		c.GroupID = title
	}
	root.AddCommand(commands...)
}

// Heading sets the heading in the help for the flags that were added since the last call of Heading.
func Heading(flags *pflag.FlagSet, title string) {
	flags.SortFlags = false // show headings, and the flags under each, in the order in which they were added
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Annotations[heading] == nil {
			annotate(f, heading, title)
		}
	})
}

// AsInKubectl makes the help list the flags in one paragraph, because users know them from kubectl.
func AsInKubectl(flags *pflag.FlagSet) {
	flags.VisitAll(func(f *pflag.Flag) { annotate(f, kubectls, kubectls) })
}

func annotate(f *pflag.Flag, key, value string) {
	if f.Annotations == nil {
		f.Annotations = map[string][]string{}
	}
	f.Annotations[key] = []string{value}
}

// flagUsages returns the help of the flags. Flags without a heading come last, below `title`.
func flagUsages(title string, flags *pflag.FlagSet) string {
	type section struct {
		title   string
		flags   pflag.FlagSet
		kubectl []string
	}
	var sections []*section
	last := &section{title: title}
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		at := last
		if h := f.Annotations[heading]; h != nil {
			i := slices.IndexFunc(sections, func(s *section) bool { return s.title == h[0] })
			if i < 0 {
				i = len(sections)
				sections = append(sections, &section{title: h[0]})
			}
			at = sections[i]
		}
		if f.Annotations[kubectls] != nil {
			at.kubectl = append(at.kubectl, "--"+f.Name)
			return
		}
		at.flags.AddFlag(f)
	})
	columns := max(terminal.Columns(os.Stdout), 80)
	var b strings.Builder
	for _, s := range append(sections, last) {
		if !s.flags.HasFlags() {
			continue
		}
		b.WriteString("\n\n" + s.title + ":\n" + strings.TrimRight(s.flags.FlagUsagesWrapped(columns), " \n"))
		if len(s.kubectl) > 0 {
			slices.Sort(s.kubectl)
			all := strings.Join(s.kubectl, ", ") + ": as in kubectl"
			b.WriteString("\n      " + strings.Join(terminal.Wrap(all, columns-6), "\n      "))
		}
	}
	return strings.TrimPrefix(b.String(), "\n\n")
}
