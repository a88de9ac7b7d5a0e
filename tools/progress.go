//go:build ignore

// Progress shows the progress of a build instead of the package names that `go build -v` prints:
//
//	go build -v FLAGS PACKAGE 2>&1 | progress FLAGS PACKAGE
//
// FLAGS are the flags that determine what the go command compiles: -modfile, -tags and -gcflags. Progress calculates
// the percentage and the time left from the source size of the packages that are not in Go's build cache. It shows no
// progress for a build of fewer than 20 packages. It copies other lines of the input to the output.
package main

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"time"
)

const few = 20 // minimum number of packages for which Progress shows the progress

func main() {
	clear, end, every := "", "\n", time.Minute
	if info, err := os.Stderr.Stat(); err == nil && info.Mode()&os.ModeCharDevice != 0 { // a terminal
		clear, end, every = "\x1b[K", "\x1b[K\r", time.Second
	}
	names := make(chan string)
	go func() {
		defer close(names)
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			if line := lines.Text(); strings.ContainsAny(line, " \t:") {
				fmt.Fprintln(os.Stderr, clear+line)
			} else {
				names <- line
			}
		}
	}()
	var began time.Time
	var sizes map[string]float64
	var compiled, done, all float64
	for tick := time.Tick(every); ; {
		select {
		case name, more := <-names:
			if !more {
				fmt.Fprint(os.Stderr, clear)
				return
			}
			if compiled++; compiled == few {
				sizes, all = lacking(os.Args[1:])
				began = time.Now()
			}
			done += sizes[name]
		case <-tick:
			if took := time.Since(began); done > 0 && took > 10*time.Second {
				fmt.Fprintf(os.Stderr, "compiled %.0f%%, about %.0f min left%s", 100*done/all, math.Ceil(took.Minutes()*(all-done)/done), end)
			}
		}
	}
}

// lacking returns the source size of each package to compile, and the sum of these sizes.
func lacking(args []string) (sizes map[string]float64, all float64) {
	const format = `{{if .Stale}}{{range .GoFiles}}{{$.ImportPath}} {{$.Dir}}/{{.}}{{"\n"}}{{end}}{{end}}`
	out, _ := exec.Command("go", append([]string{"list", "-deps", "-f", format}, args...)...).Output() // on an error, Progress shows no progress
	sizes = map[string]float64{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		if info, err := os.Stat(file); err == nil {
			sizes[name] += float64(info.Size())
			all += float64(info.Size())
		}
	}
	return sizes, all
}
