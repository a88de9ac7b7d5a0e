package node

import (
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// hit begins a fault without a cloud.
func (f *Fleet) hit(fault Fault) []string {
	names, err := f.Begin(fault)
	if err != nil {
		panic(err)
	}
	return names
}

func (f *Fleet) Fail(fraction float64) []string {
	return f.hit(Fault{Kind: control.NodeFailure, Fraction: fraction})
}

func (f *Fleet) Shutdown(fraction float64) []string {
	return f.hit(Fault{Kind: control.NodeShutdown, Fraction: fraction})
}

func (f *Fleet) Slow(fraction float64, delay time.Duration) []string {
	return f.hit(Fault{Kind: control.SlowKubelet, Fraction: fraction, Delay: delay})
}

func (f *Fleet) Isolate(fraction float64) []string {
	return f.hit(Fault{Kind: control.KubeletUnreachable, Fraction: fraction})
}

func (f *Fleet) Vanish(fraction float64) ([]string, error) {
	return f.Begin(Fault{Kind: control.InstancesVanish, Fraction: fraction})
}

func (f *Fleet) Join() ([]string, error) { return f.Begin(Fault{Kind: control.NodeScaleUp}) }

func (f *Fleet) Recover() error {
	_, err := f.Begin(Fault{Kind: control.NodeRecovery})
	return err
}
