package cli

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/stormglass/stormglass/internal/terminal"
)

// addGlobals adds the flags that all commands have. The flags take effect before the command runs.
func addGlobals(root *cobra.Command, stderr io.Writer) {
	flags := root.PersistentFlags()
	flags.BoolP("quiet", "q", false, "print only results, questions and errors, not progress")
	noColor := flags.Bool("no-color", false, "print without colours, as with $NO_COLOR")
	level := logLevel("off")
	flags.Var(&level, "log-level", "`level` of client-go's log on standard error: "+strings.Join(logLevels(), ", "))
	_ = root.RegisterFlagCompletionFunc("log-level", cobra.FixedCompletions(logLevels(), cobra.ShellCompDirectiveNoFileComp))
	root.PersistentPreRunE = func(*cobra.Command, []string) error {
		if *noColor {
			if err := os.Setenv("NO_COLOR", "1"); err != nil { // for loadgen and the processes that it starts
				return err
			}
		}
		level.apply(stderr)
		return nil
	}
}

func quiet(cmd *cobra.Command) bool {
	q, err := cmd.Flags().GetBool("quiet")
	return err == nil && q
}

func progressTo(cmd *cobra.Command) io.Writer {
	if quiet(cmd) {
		return io.Discard
	}
	return cmd.ErrOrStderr()
}

// sayTo returns a function that prints lines to w, without control characters.
func sayTo(w io.Writer) func(format string, args ...any) {
	return func(format string, args ...any) { fmt.Fprintln(w, terminal.CleanLines(fmt.Sprintf(format, args...))) }
}

func logLevels() []string { return []string{"off", "error", "info", "debug"} }

type logLevel string

func (l *logLevel) String() string { return string(*l) }

func (l *logLevel) Type() string { return "level" }

func (l *logLevel) Set(text string) error {
	if !slices.Contains(logLevels(), text) {
		return fmt.Errorf("is unknown (%s)", strings.Join(logLevels(), ", "))
	}
	*l = logLevel(text)
	return nil
}

// apply sends the log of client-go to w. With "off", the default, it drops the log, because client-go also returns
// important messages as errors.
func (l *logLevel) apply(w io.Writer) {
	if *l == "off" {
		klog.SetLogger(klog.Logger{})
		return
	}
	verbosity := map[logLevel]int{"error": 0, "info": 2, "debug": 6}[*l] // klog's -v; at 6 or higher, client-go logs requests
	least := slog.Level(-verbosity)                                      // klog's V(n) is slog's level -n
	if *l == "error" {
		least = slog.LevelError
	}
	var v klog.Level
	_ = v.Set(strconv.Itoa(verbosity)) // cannot fail: the string is a number
	klog.SetSlogLogger(slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: least})))
}
