package node

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/stormglass/stormglass/controlplane/control"
)

// chooser selects the nodes that a fault hits. The selection is random. It depends on the seed, but not on how the
// nodes are divided among processes.
type chooser struct {
	plan  *plan
	parts []Part
	// address returns the IP address of node i.
	address func(i int) netip.Addr

	mu     sync.Mutex
	rng    *rand.Rand
	scaled bool // whether a NodeScaleUp has added the nodes that Start did not register
}

func newChooser(p *plan, parts []Part, address func(i int) netip.Addr) *chooser {
	return &chooser{plan: p, parts: parts, address: address, rng: rand.New(rand.NewPCG(uint64(p.Seed), 0xfa11))}
}

// early returns the number of nodes that Start registers. These are the nodes with the lowest numbers.
func (p *plan) early() int { return p.Spec.Count - p.Spec.Later }

// count returns the current number of nodes. The caller holds mu.
func (c *chooser) count() int {
	if c.scaled {
		return c.plan.Spec.Count
	}
	return c.plan.early()
}

func (c *chooser) names(first, last int) []string {
	var names []string
	for i := first; i < last; i++ {
		names = append(names, c.plan.nodeName(i))
	}
	return names
}

func (c *chooser) begin(fault Fault) ([]string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch fault.Kind {
	case control.NodeRecovery:
		if err := c.launch(0, c.count()); err != nil {
			return nil, err
		}
		return nil, c.hit(fault, nil)
	case control.NodeScaleUp:
		first, last := c.count(), c.plan.Spec.Count
		if err := c.launch(first, last); err != nil {
			return nil, err
		}
		c.scaled = true
		return c.names(first, last), c.hit(fault, nil)
	case control.SlowKubelet:
		if fault.Delay <= 0 {
			return nil, nil
		}
	}
	able, err := c.able(fault.Kind)
	if err != nil {
		return nil, err
	}
	n := max(0, min(len(able), int(fault.Fraction*float64(c.count())+0.5)))
	c.rng.Shuffle(len(able), func(i, j int) { able[i], able[j] = able[j], able[i] })
	names := make([]string, 0, n)
	for _, i := range able[:n] {
		names = append(names, c.plan.nodeName(i))
	}
	if err := c.hit(fault, able[:n]); err != nil {
		return names, err
	}
	if fault.Kind == control.InstancesVanish {
		err = c.changeInstances(control.Instances{Terminate: names})
	}
	return names, err
}

// able returns the numbers of the nodes that a fault of this kind may hit now, in ascending order. It asks every Part.
// A Part controls the nodes of one process.
func (c *chooser) able(kind string) ([]int, error) {
	each := make([][]int, len(c.parts))
	var all errgroup.Group
	for i, p := range c.parts {
		all.Go(func() (err error) {
			each[i], err = p.Able(kind)
			return err
		})
	}
	err := all.Wait()
	able := slices.Concat(each...)
	slices.Sort(able)
	return able, err
}

// hit starts a fault in all parts in parallel. It passes to each part only the numbers of the nodes that the part
// simulates.
func (c *chooser) hit(fault Fault, numbers []int) error {
	own := make([][]int, len(c.parts))
	for _, n := range numbers {
		own[n%len(own)] = append(own[n%len(own)], n)
	}
	var all errgroup.Group
	for i, p := range c.parts {
		all.Go(func() error { return p.Hit(fault, own[i]) })
	}
	return all.Wait()
}
