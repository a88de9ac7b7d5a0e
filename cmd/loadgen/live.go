package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stormglass/stormglass/loadgen"
)

// liveFlags say how a run in progress is shown.
type liveFlags struct {
	plain bool
	web   string

	served *loadgen.Web // nil: no page is served
}

func (f *liveFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.plain, "plain", false, "show progress in lines on a terminal too, in place of a page with charts and keys")
	flags.StringVar(&f.web, "web", "", "serve a live page of the run to browsers of this machine, at this `address` (--web alone: a free port of 127.0.0.1)")
	flags.Lookup("web").NoOptDefVal = anyPort
}

// check refuses a page of several runs.
func (f *liveFlags) check(variant string) error {
	if f.web != "" && variant == "all" {
		return loadgen.Usage(errors.New("--web: --variant all is several runs, and the page is of one (name a variant)"))
	}
	return nil
}

// begin gives a run its displays.
func (f *liveFlags) begin(cmd *cobra.Command, ui *tui, o *loadgen.Options, signals *interrupts) (err error) {
	o.Control = &loadgen.Control{}
	url := ""
	if f.web != "" {
		if f.served, err = loadgen.OpenWeb(f.web); err != nil {
			return err
		}
		url = f.served.URL()
		o.Progress = f.served.Start(o.Control, ui)
		ui.tell("live page at " + url + " (anyone with this address can pause the run)")
	}
	if !f.plain && ui.terminal && !ui.quiet && os.Getenv("NO_COLOR") == "" && !logs(cmd) {
		page := newPage(o.Control, ui.began, url)
		ui.show(page)
		signals.atEnd(page.abandon)
	}
	return nil
}

// finish gives the report to the browsers that follow the run.
func (f *liveFlags) finish(dir string, hurry <-chan struct{}) error {
	return f.served.Finish(dir, hurry)
}

// end closes what is still served.
func (f *liveFlags) end() { _ = f.served.Close() } // nothing is lost by it

// logs reports whether client-go's log goes to the terminal, over what is drawn there.
func logs(cmd *cobra.Command) bool {
	flag := cmd.Flags().Lookup("log-level")
	return flag != nil && flag.Value.String() != "off"
}
