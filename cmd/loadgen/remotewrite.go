package main

import (
	"fmt"

	"github.com/spf13/pflag"

	"github.com/stormglass/stormglass/loadgen"
)

// remoteWriteFlags name a receiver of remote write. Secrets are in files.
type remoteWriteFlags struct{ config loadgen.RemoteWrite }

func (f *remoteWriteFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.config.URL, "remote-write", "", "`URL` of a receiver of Prometheus' remote write, as http://127.0.0.1:9090/api/v1/write")
	flags.StringVar(&f.config.HeaderFile, "remote-write-header-file", "", "`file` with a header a line for it, as X-Scope-OrgID: tenant or Authorization: Bearer TOKEN")
	flags.StringVar(&f.config.HTTPConfig, "remote-write-http-config", "", "`file` with credentials and TLS for it, as promtool's --http.config.file")
}

// check checks the flags, and sends nothing.
func (f *remoteWriteFlags) check() error {
	if f.config.URL != "" {
		if err := loadgen.CheckRemoteWrite(f.config); err != nil {
			return loadgen.Usage(fmt.Errorf("--remote-write: %w", err))
		}
		return nil
	}
	for _, flag := range []struct{ name, v string }{{"--remote-write-header-file", f.config.HeaderFile}, {"--remote-write-http-config", f.config.HTTPConfig}} {
		if flag.v != "" {
			return loadgen.Usage(fmt.Errorf("%s: it belongs to a receiver (add --remote-write URL)", flag.name))
		}
	}
	return nil
}
