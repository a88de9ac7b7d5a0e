package commandline

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
)

// program returns a program with a command of each kind.
func program() *cobra.Command {
	ran := func(*cobra.Command, []string) error { return nil }
	root := &cobra.Command{Use: "prog", SilenceErrors: true, SilenceUsage: true}
	up := &cobra.Command{Use: "up", RunE: ran, Args: cobra.NoArgs, SuggestFor: []string{"start"}}
	up.Flags().String("observe", "", "serve at this `address`")
	up.Flags().Lookup("observe").NoOptDefVal = "127.0.0.1:0"
	up.Flags().Int("count", 1, "`number` of them")
	up.Flags().Duration("for", time.Second, "how long")
	up.Flags().StringSlice("member", nil, "its `name`")
	up.Flags().StringArray("rule", nil, "a rule")
	up.Flags().Uint64("limit", 1, "a limit")
	up.Flags().Float64("speed", 1, "a speed")
	up.Flags().Bool("yes", false, "do it")
	up.Flags().String("note", "", "may be empty")
	fault := &cobra.Command{Use: "fault", RunE: ran} // shows help
	fault.AddCommand(&cobra.Command{Use: "kill", RunE: ran, Args: cobra.NoArgs}, &cobra.Command{Use: "clear [ID]", RunE: ran, Args: cobra.MaximumNArgs(1)}, &cobra.Command{Use: "secret", RunE: ran, Hidden: true})
	group := &cobra.Command{Use: "group"} // cobra's own help, for any argument
	group.AddCommand(&cobra.Command{Use: "etcd-quota", RunE: ran, Args: cobra.NoArgs})
	any := &cobra.Command{Use: "any [FILE...]", RunE: ran}
	any.Flags().String("out", "", "where")
	save := &cobra.Command{Use: "save NAME DIR...", RunE: ran, Args: cobra.MinimumNArgs(2)}
	save.Flags().Uint16("keep", 1, "how many")
	save.Flags().IntSlice("ports", nil, "which")
	save.Flags().StringSlice("names", nil, "which")
	root.AddCommand(up, fault, group, any, save)
	root.AddCommand(&cobra.Command{Use: "query DIR EXPR", RunE: ran, Args: cobra.ExactArgs(2)}, &cobra.Command{Use: "join DIR...", RunE: ran, Args: cobra.MinimumNArgs(1)})
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	Strict(root, func(err error) error { return &usage{err} }, "note")
	return root
}

type usage struct{ error }

func TestMistakesAreOneLineWithAHint(t *testing.T) {
	for args, want := range map[string]string{
		"ip":                       `unknown command "ip" for "prog" (did you mean "up"?)`,
		"start":                    `unknown command "start" for "prog" (did you mean "up"?)`,
		"hepl":                     `unknown command "hepl" for "prog" (did you mean "help"?)`,
		"fautl":                    `unknown command "fautl" for "prog" (did you mean "fault"?)`,
		"kill":                     `unknown command "kill" for "prog" (did you mean "fault kill"?)`,
		"nothing":                  "unknown command \"nothing\" for \"prog\" (`prog --help` lists them)",
		"fault kil --for 3s":       `unknown command "kil" for "prog fault" (did you mean "kill"?)`,
		"fault secre":              "unknown command \"secre\" for \"prog fault\" (`prog fault --help` lists them)",
		"group quota":              `unknown command "quota" for "prog group" (did you mean "etcd-quota"?)`,
		"group no such":            "unknown command \"no\" for \"prog group\" (`prog group --help` lists them)",
		"help fault kil":           `unknown command "kil" for "prog fault" (did you mean "kill"?)`,
		"completion zhs":           `unknown command "zhs" for "prog completion" (did you mean "zsh"?)`,
		"fault kill etcd-0":        `prog fault kill takes no argument "etcd-0" (usage: prog fault kill [flags])`,
		"fault clear 1 2":          `prog fault clear takes no argument "2" (usage: prog fault clear [ID] [flags])`,
		"query":                    `prog query needs DIR and EXPR (usage: prog query DIR EXPR [flags])`,
		"query a":                  `prog query needs EXPR (usage: prog query DIR EXPR [flags])`,
		"query a b c":              `prog query takes no argument "c" (usage: prog query DIR EXPR [flags])`,
		"join":                     `prog join needs DIR (usage: prog join DIR... [flags])`,
		"save":                     `prog save needs NAME and DIR (usage: prog save NAME DIR... [flags])`,
		"save a":                   `prog save needs DIR (usage: prog save NAME DIR... [flags])`,
		"save a b --keep x":        `--keep "x": is not a whole number of 0 or more`,
		"save a b --ports 1,x":     `--ports "1,x": contains an item that is not a whole number`,
		"save a b --=x":            `--=x is not a flag (usage: prog save NAME DIR... [flags])`,
		"save a b --names \"x":     `--names "\"x": is not a comma-separated list (close its quotes)`,
		"fault clear EMPTY":        "argument 1 is empty (usage: prog fault clear [ID] [flags])",
		"up --observe 127.0.0.1:1": `prog up takes no argument "127.0.0.1:1" (write the address of --observe after =: --observe=127.0.0.1:1)`,
		"up --cout 1":              "unknown flag: --cout (did you mean --count?)",
		"up -count 1":              "unknown shorthand flag: 'c' in -count (did you mean --count?)",
		"up --nothing":             "unknown flag: --nothing (`prog up --help` shows the flags)",
		"up --count":               "--count needs a value (write --count NUMBER)",
		"up --count x":             `--count "x": is not a whole number`,
		"up --count 1.5":           `--count "1.5": is not a whole number`,
		"up --limit=-1":            `--limit "-1": is not a whole number of 0 or more`,
		"up --for 5":               `--for "5": is not a duration (write it as 30s or 5m)`,
		"up --speed NaN":           "--speed NaN is not a finite number (write a number such as 1 or 0.5)",
		"up --speed=-Inf":          "--speed -Inf is not a finite number (write a number such as 1 or 0.5)",
		"up --yes=maybe":           `--yes "maybe": is neither true nor false`,
		"up --observe=":            "--observe is empty (give it a value, or leave it out)",
		"up --member=":             "--member is empty (give it a value, or leave it out)",
		"up --member a,,b":         "--member is empty (give it a value, or leave it out)",
		"up --rule EMPTY":          "--rule is empty (give it a value, or leave it out)",
		"any --out= a":             "--out is empty (give it a value, or leave it out)",
		"any a EMPTY":              "argument 2 is empty (usage: prog any [FILE...] [flags])",
		"up --observe= --rule=":    "--observe is empty (give it a value, or leave it out)\n--rule is empty (give it a value, or leave it out)",
	} {
		t.Run(args, func(t *testing.T) {
			root := program()
			words := strings.Fields(args)
			for i := range words {
				words[i] = strings.ReplaceAll(words[i], "EMPTY", "")
			}
			root.SetArgs(words)
			err := root.Execute()
			var marked *usage
			if !errors.As(err, &marked) || err.Error() != want {
				t.Errorf("\n got %v\nwant %s", err, want)
			}
		})
	}
}

func TestValidCommandsRun(t *testing.T) {
	for _, args := range []string{"", "up", "up --observe", "up --observe=127.0.0.1:1 --count 5 --note= --member a,b", "fault", "fault clear 1", "group", "any a b", "help", "help fault kill", "completion bash", "up --help"} {
		root := program()
		root.SetArgs(strings.Fields(args))
		if err := root.Execute(); err != nil {
			t.Errorf("prog %s: %v", args, err)
		}
	}
}

func TestCheckLeavesPathUnchanged(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		check func(string) error
		path  string
		want  string // "" : it can be used
	}{
		{CheckDir, filepath.Join(dir, "a", "b"), ""},
		{CheckDir, dir, ""},
		{CheckDir, file, "not a directory"},
		{CheckDir, filepath.Join(file, "a"), "not a directory"},
		{CheckDir, "/proc/stormglass/a", "no such file or directory"},
		{CheckDir, filepath.Join(dir, strings.Repeat("x", 300)), "file name too long"},
		{NewFile, filepath.Join(dir, "new"), ""},
		{NewFile, file, "already exists"},
		{NewFile, filepath.Join(dir, "none", "new"), "no such file or directory"},
	} {
		err := c.check(c.path)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.path, err, c.want)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

// Words of a usage line that are values of flags, alternative forms or a file for standard input do not count as
// arguments.
func TestArgumentsOfAUsageLine(t *testing.T) {
	for use, want := range map[string]struct {
		needed string
		most   int
	}{
		"up": {"", 0}, "clear [ID]": {"", 1}, "gate DIR --rules FILE": {"DIR", 1}, "save NAME DIR...": {"NAME DIR", -1}, "prove [DIR...]": {"", -1},
		"diagnose DIR | --live | --prometheus URL": {"DIR", 1}, "check KIND < CHECK.json": {"KIND", 1}, "run NAME|FILE [--out DIR]": {"NAME|FILE", 1},
	} {
		if needed, most := argumentNames(&cobra.Command{Use: use}); strings.Join(needed, " ") != want.needed || most != want.most {
			t.Errorf("%s: needs %q, at most %d", use, needed, most)
		}
	}
}
