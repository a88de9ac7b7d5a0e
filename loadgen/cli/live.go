package cli

import (
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/run"
	"github.com/stormglass/stormglass/loadgen/internal/web"
)

// liveFlags are the flags that control how loadgen shows an active run.
type liveFlags struct {
	plain bool
	web   string

	served *web.Server // server of the web page; nil without --web
}

func (f *liveFlags) add(flags *pflag.FlagSet) {
	flags.BoolVar(&f.plain, "plain", false, "print progress as lines, without charts and keys")
	flags.StringVar(&f.web, "web", "", "serve the report during the run to browsers on this machine, at this `address`: --web=HOST:PORT, or --web alone for a free port of 127.0.0.1")
	flags.Lookup("web").NoOptDefVal = anyPort
}

// check returns an error if --web is used with several variants, or with an address that other machines can reach.
func (f *liveFlags) check(variant string) error {
	switch {
	case f.web == "":
		return nil
	case variant == "all":
		return exitcode.Usagef("--web shows only one run, but --variant all starts several runs (specify one variant)")
	}
	return web.Check(f.web)
}

// begin prepares the live displays of a run: the page on the terminal, and the web page.
func (f *liveFlags) begin(cmd *cobra.Command, ui *tui, o *run.Options, signals *interrupts) (err error) {
	o.Control = &run.Control{}
	url := ""
	if f.web != "" {
		if f.served, err = web.Open(f.web); err != nil {
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

// finish replaces the web page with the report in dir, in all browsers that show the page.
func (f *liveFlags) finish(dir string, hurry <-chan struct{}) error {
	return f.served.Finish(dir, hurry)
}

// end stops serving the web page.
func (f *liveFlags) end() { _ = f.served.Close() } // ignore the error: no data is lost

// logs reports whether client-go writes its log to the terminal. The log would overwrite the page there.
func logs(cmd *cobra.Command) bool {
	flag := cmd.Flags().Lookup("log-level")
	return flag != nil && flag.Value.String() != "off"
}
