// Imports runs `loadgen import` on the example configurations in checkouts of kube-burner, ClusterLoader2 and KWOK.
// It runs `loadgen validate` on each resulting scenario, and prints a table.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/stormglass/stormglass/loadgen/lab/calibrate/runner"
)

func main() {
	var o options
	flag.StringVar(&o.loadgen, "loadgen", "bin/loadgen", "the `binary`")
	flag.StringVar(&o.kubeBurner, "kube-burner", "", "`directory` of a checkout of kube-burner/kube-burner")
	flag.StringVar(&o.perfTests, "perf-tests", "", "`directory` of a checkout of kubernetes/perf-tests")
	flag.StringVar(&o.kwok, "kwok", "", "`directory` of a checkout of kubernetes-sigs/kwok")
	flag.Func("profiles", "`directory` with profiles of kube-burner, of alerts or metrics (repeatable)", func(dir string) error {
		o.profileDirs = append(o.profileDirs, dir)
		return nil
	})
	flag.StringVar(&o.out, "out", "", "`directory` for the scenarios; default: they are not kept")
	flag.Parse()
	runner.Main("imports", func(ctx context.Context) error { return o.run(ctx, os.Stdout) })
}

type options struct {
	loadgen, kubeBurner, perfTests, kwok, out string
	profileDirs                               []string
}

type example struct {
	name string
	args []string // arguments of `loadgen import`
}

// row is the result of importing one example.
type row struct {
	name, result, parts string
	remarks             int
	valid, says         string
}

func (o options) run(ctx context.Context, w io.Writer) error {
	for _, tool := range []struct {
		title, dir string
		list       func(string) ([]example, error)
	}{
		{"kube-burner", o.kubeBurner, kubeBurner}, {"ClusterLoader2", o.perfTests, clusterLoader}, {"KWOK", o.kwok, kwok},
	} {
		if tool.dir == "" {
			continue
		}
		all, err := tool.list(tool.dir)
		if err != nil {
			return err
		}
		if len(all) == 0 {
			return fmt.Errorf("%s: no examples of %s found (is the directory a checkout?)", tool.dir, tool.title)
		}
		if err := o.table(ctx, w, tool.title, all); err != nil {
			return err
		}
	}
	return o.profiles(ctx, w)
}

func (o options) table(ctx context.Context, w io.Writer, title string, all []example) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s\timport\twhole parts\tremarks\tloadgen validate\n", title)
	counts := map[string]int{}
	accepted := 0
	var refusals []row
	for _, e := range all {
		r, err := o.try(ctx, e)
		if err != nil {
			return err
		}
		counts[r.result]++
		if r.valid == "takes it" {
			accepted++
		}
		if r.says != "" {
			refusals = append(refusals, r)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%s\n", r.name, r.result, r.parts, r.remarks, r.valid)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d complete, %d with remarks, %d refused; loadgen validate accepts %d of %d\n", counts[whole], counts[withRemarks], counts[refused], accepted,
		counts[whole]+counts[withRemarks])
	for _, r := range refusals {
		fmt.Fprintf(w, "  %s: %s\n", r.name, r.says)
	}
	fmt.Fprintln(w)
	return nil
}

// Possible results of an import.
const (
	whole       = "whole"
	withRemarks = "with remarks"
	refused     = "refused"
)

func (o options) try(ctx context.Context, e example) (row, error) {
	r := row{name: e.name, result: refused, parts: "-", valid: "-"}
	scenario, says, err := o.command(ctx, nil, slices.Concat([]string{"import"}, e.args, []string{"--partial"})...)
	lines := strings.Split(strings.TrimSpace(says), "\n")
	if err != nil || ctx.Err() != nil {
		r.says = strings.TrimPrefix(lines[0], "loadgen: ")
		return r, onlyExit(ctx, err)
	}
	last := lines[len(lines)-1]
	var carried, of int
	if _, err := fmt.Sscanf(last[strings.Index(last, ": ")+2:], "%d of %d parts were imported completely, %d remark", &carried, &of, &r.remarks); err != nil {
		return r, fmt.Errorf("read %q: %w", last, err)
	}
	r.parts = fmt.Sprintf("%d of %d", carried, of)
	if r.result = whole; r.remarks > 0 {
		r.result = withRemarks
	}
	if o.out != "" {
		name := strings.ReplaceAll(strings.TrimSuffix(e.name, filepath.Ext(e.name)), "/", "-") + ".yaml"
		if err := errors.Join(os.MkdirAll(o.out, 0o755), os.WriteFile(filepath.Join(o.out, name), []byte(scenario), 0o644)); err != nil {
			return r, err
		}
	}
	r.valid = "takes it"
	if _, says, err := o.command(ctx, []byte(scenario), "validate", "-"); err != nil {
		r.valid = "refuses it"
		r.says, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(says), "loadgen: "), "\n")
		return r, onlyExit(ctx, err)
	}
	return r, nil
}

// onlyExit returns the error of a command. It returns nil if the command ran and exited, with any exit code.
func onlyExit(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil {
		return nil
	}
	return errors.Join(err, ctx.Err())
}

func (o options) command(ctx context.Context, stdin []byte, args ...string) (stdout, stderr string, err error) {
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(ctx, o.loadgen, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &out, &errs
	err = cmd.Run()
	return out.String(), errs.String(), err
}
