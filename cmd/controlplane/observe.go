package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"

	"github.com/spf13/pflag"

	"github.com/stormglass/stormglass/controlplane"
	"github.com/stormglass/stormglass/internal/commandline"
	"github.com/stormglass/stormglass/internal/loopback"
)

type observerOptions struct {
	addr   string // address of the query API, HOST:PORT; empty without --observe
	public bool
	binary string
}

func (o *observerOptions) add(flags *pflag.FlagSet) {
	flags.StringVar(&o.addr, "observe", "", "serve the metrics over the Prometheus query API at this `address`: --observe=HOST:PORT, or --observe alone for a free port of 127.0.0.1")
	flags.Lookup("observe").NoOptDefVal = "127.0.0.1:0"
	flags.BoolVar(&o.public, "observe-public", false, "allow an address other than loopback in --observe; the server has no password, so anyone who can reach the address can read the metrics")
	flags.StringVar(&o.binary, "loadgen", "", "loadgen `binary` for --observe (default: next to controlplane, then PATH)")
}

func (o *observerOptions) args() []string {
	if o.addr == "" {
		return nil
	}
	args := []string{"--observe=" + o.addr}
	if o.public {
		args = append(args, "--observe-public")
	}
	if o.binary != "" {
		args = append(args, "--loadgen", o.binary)
	}
	return args
}

func (o *observerOptions) check() error {
	if o.addr == "" {
		if o.public || o.binary != "" {
			return errors.New("--observe-public and --loadgen have no effect without --observe (add --observe=ADDR)")
		}
		return nil
	}
	if err := loopback.Check(o.addr, o.public); err != nil {
		return fmt.Errorf("--observe: %w", err)
	}
	return nil
}

// find finds the loadgen binary. `up` calls it before it starts the plane.
func (o *observerOptions) find(executable string) (err error) {
	switch {
	case o.addr == "":
		return nil
	case o.binary == "":
		o.binary, err = controlplane.FindLoadgen(executable)
	default:
		if o.binary, err = commandline.Program(o.binary); err != nil {
			return fmt.Errorf("--loadgen %w (`make build` builds bin/loadgen)", err)
		}
	}
	if err != nil {
		return fmt.Errorf("--observe: %w", err)
	}
	return nil
}

// free checks that the address is not in use. `up` calls it before it starts the plane.
func (o *observerOptions) free() error {
	if o.addr == "" {
		return nil
	}
	l, err := net.Listen("tcp", o.addr)
	if err != nil {
		return fmt.Errorf("--observe: %w (use port 0 for a free port)", err)
	}
	return l.Close()
}

func (o *observerOptions) start(ctx context.Context, plane *controlplane.Plane, progress io.Writer) (*controlplane.Observer, error) {
	w, err := plane.Observe(ctx, controlplane.ObserverOptions{Binary: o.binary, Addr: o.addr, Public: o.public})
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(progress, "the observer serves queries at %s\n", w.URL())
	return w, nil
}
