package exitcode

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// meanings explains loadgen's exit codes in the words of its manual, README and docs.
func meanings() map[int]string {
	return map[int]string{
		Pass:        "every gate passed",
		Fail:        "a gate failed, a condition of `--abort-on` held, a phase with a gate timed out before its end condition held, or the cluster prevented a load from reaching its rate",
		Usage:       "bad usage or a bad scenario",
		NoData:      "`loadgen` could not judge the run: it has no gates or no data, a latency or duration exceeded its bound while the machine was busy, the generator was saturated, the rate is too high for the load's settings, or the run was interrupted",
		Environment: "the environment failed",
		Partial:     "`loadgen import` left out a whole job, phase, measurement or Stage",
		Crash:       "the program crashed: a bug",
	}
}

// Every table of exit codes in README and docs lists all codes with their meanings, and no text names an unknown code.
func TestDocsSayWhatTheCodesMean(t *testing.T) {
	tables := 0
	for _, file := range pages(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, table := range codeTables(string(text)) {
			tables++
			if !maps.Equal(table, meanings()) {
				t.Errorf("%s: the table of exit codes has\n%v, but the package has\n%v", file, table, meanings())
			}
		}
		for _, m := range regexp.MustCompile(`(?i)\bexit(?:s|ed)?(?: code| with(?: code)?)? (\d+)\b`).FindAllStringSubmatch(string(text), -1) {
			code, _ := strconv.Atoi(m[1])
			if _, ok := meanings()[code]; !ok {
				t.Errorf("%s: %q: there is no such exit code", file, m[0])
			}
		}
	}
	if tables == 0 {
		t.Error("README.md has no table of exit codes")
	}
}

func pages(t *testing.T) []string {
	root := filepath.Join("..", "..")
	all := []string{filepath.Join(root, "README.md")}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// codeTables returns the Markdown tables whose first column is the exit code. Each maps the code to its meaning.
func codeTables(text string) (tables []map[int]string) {
	var table map[int]string
	inside := false // whether the previous line belongs to a table; the first line of a table is its head
	for line := range strings.Lines(text) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		first := strings.Trim(strings.TrimSpace(cells[0]), "`*")
		head := !inside
		inside = strings.HasPrefix(line, "|") && len(cells) > 1
		switch {
		case !inside:
			table = nil
		case head && slices.ContainsFunc([]string{"exit code", "exit", "code"}, func(name string) bool { return strings.EqualFold(first, name) }):
			table = map[int]string{}
			tables = append(tables, table)
		case table != nil:
			if code, err := strconv.Atoi(first); err == nil {
				table[code] = strings.TrimSpace(cells[1])
			}
		}
	}
	return tables
}
