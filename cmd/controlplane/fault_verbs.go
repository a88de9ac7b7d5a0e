package main

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/stormglass/stormglass/controlplane/control"
)

func (v faultVerb) componentsFlag() string {
	if v.OfMembers() {
		return "member"
	}
	return "component"
}

func (v faultVerb) flags(cmd *cobra.Command, f *control.Fault) {
	flags := cmd.Flags()
	for _, field := range v.Takes {
		switch field {
		case "components":
			usage := "component `name`; 'controlplane fault --help' lists the forms (repeatable)"
			if v.OfMembers() {
				usage = "`name` of a member, etcd for all members, etcd-leader or etcd-follower (repeatable)"
			}
			flags.StringSliceVar(&f.Components, v.componentsFlag(), nil, usage)
		case "peers":
			flags.StringSliceVar(&f.Peers, "peer", nil, "`name` or kind of the component at the other end of the links (repeatable; default: all)")
		case "for":
			flags.DurationVar(&f.For, "for", 0, "`duration` of the fault, for example 30s or 5m (default: until 'controlplane fault clear')")
		case "delay":
			flags.DurationVar(&f.Delay, "delay", 0, "`duration` by which "+v.Delays+" is delayed, for example 25ms")
		case "jitter":
			flags.DurationVar(&f.Jitter, "jitter", 0, "maximum random `duration` to add to or subtract from --delay, for example 5ms")
			flags.Int64Var(&f.Seed, "seed", 0, "random seed of the jitter; the same `number` gives the same jitter")
		case "files":
			flags.StringVar(&f.Files, "files", "", "`files` with slow fsync: wal (the write-ahead log, the default) or all (also the database and snapshots)")
		case "limit":
			flags.Uint64Var(&f.Limit, "limit", 0, "maximum `number` of open files, 1 to 1048576")
		case "writers":
			flags.IntVar(&f.Writers, "writers", 0, "`number` of parallel writers, 1 to 64 (default 4)")
		case "size":
			flags.Func("size", "`size` of the data that each writer writes before an fsync, 4KiB to 1GiB (default 1MiB)", readBytes(&f.Size))
		case "quota":
			flags.Func("quota", "`size` of the quota, 1MiB to 8GiB", readBytes(&f.Quota))
		case "resource":
			flags.StringVar(&f.Resource, "resource", "", "plural name of the `resource` whose creation calls the webhook, for example pods or deployments.apps")
		case "fails":
			flags.BoolVar(&f.Fails, "fails", false, "answer with status 500, after the delay")
		case "throttle":
			flags.Float64Var(&f.Throttle, "throttle", 0, "maximum `number` of requests per second; the service answers requests above it with status 429")
		case "ignore":
			flags.BoolVar(&f.Ignore, "ignore", false, "set failurePolicy Ignore: if the webhook fails, the request is allowed (default: Fail)")
		case "webhooks":
			flags.IntVar(&f.Webhooks, "webhooks", 0, "`number` of webhooks, 1 to 32 (default 1)")
		case "mutates":
			flags.BoolVar(&f.Mutates, "mutates", false, "register mutating webhooks; each adds an annotation (default: validating)")
		case "reinvoke":
			flags.BoolVar(&f.Reinvoke, "reinvoke", false, "set reinvocationPolicy IfNeeded: a webhook is called again if a later webhook changed the object (default: Never)")
		case "to":
			flags.StringVar(&f.To, "to", "", "minor `version` to change to, for example 1.36")
		case "timeout":
			flags.Func("timeout", "maximum `time` that the API server waits for the webhook, 1s to 30s in whole seconds (default 10s)", readSeconds(&f.TimeoutSeconds))
		}
	}
}

// readSeconds returns a function that reads a whole number of seconds, such as "5s", into *to.
func readSeconds(to *int) func(string) error {
	return func(text string) error {
		d, err := time.ParseDuration(text)
		if err != nil {
			return errors.New("not a duration (write it as 5s)")
		}
		if d <= 0 || d%time.Second != 0 {
			return fmt.Errorf("%s is not a whole number of seconds", d)
		}
		*to = int(d / time.Second)
		return nil
	}
}

// readBytes returns a function that reads a size, such as "4096", "16KiB", "1MiB" or "2GiB", into *to.
func readBytes(to *int64) func(string) error {
	return func(text string) error {
		number, unit := text, int64(1)
		for _, u := range byteUnits() {
			if rest, ok := strings.CutSuffix(text, u.name); ok {
				number, unit = rest, u.bytes
				break
			}
		}
		n, err := strconv.ParseInt(strings.TrimSpace(number), 10, 64)
		if err != nil || n < 0 || n > math.MaxInt64/unit {
			return errors.New("not a size (write it as 16MiB: a whole number of bytes, KiB, MiB or GiB)")
		}
		*to = n * unit
		return nil
	}
}

type byteUnit struct {
	name  string
	bytes int64
}

func byteUnits() []byteUnit { return []byteUnit{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}} }

func formatBytes(n int64) string {
	for _, u := range byteUnits() {
		if n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}
