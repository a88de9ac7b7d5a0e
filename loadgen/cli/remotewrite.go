package cli

import (
	"github.com/spf13/pflag"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/remotewrite"
)

// remoteWriteFlags are the flags for a remote write receiver. The flags for secrets name files.
type remoteWriteFlags struct{ config remotewrite.Config }

func (f *remoteWriteFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.config.URL, "remote-write", "", "send the samples to this `URL` of a Prometheus remote write receiver, for example http://127.0.0.1:9090/api/v1/write")
	flags.StringVar(&f.config.HeaderFile, "remote-write-header-file", "", "`file` with HTTP headers for the receiver, one per line, for example X-Scope-OrgID: tenant")
	flags.StringVar(&f.config.HTTPConfig, "remote-write-http-config", "", "`file` with credentials and TLS settings for the receiver, in the format of promtool's --http.config.file")
}

func (f *remoteWriteFlags) check() error {
	if f.config.URL != "" {
		if _, err := remotewrite.New(f.config); err != nil {
			return exitcode.Usagef("--remote-write: %w", err)
		}
		return nil
	}
	for _, flag := range []struct{ name, v string }{{"--remote-write-header-file", f.config.HeaderFile}, {"--remote-write-http-config", f.config.HTTPConfig}} {
		if flag.v != "" {
			return exitcode.Usagef("%s requires a receiver (add --remote-write URL)", flag.name)
		}
	}
	return nil
}
