package diagnosis

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/common/model"
	"go.yaml.in/yaml/v3"
)

//go:embed catalogue.yaml
var catalogueYAML []byte

// catalogue is what a diagnosis knows.
type catalogue struct {
	Signals []signal
	// Groups are signals that follow from many mechanisms, by a name for all of them.
	Groups     map[string][]string
	Mechanisms []mechanism
}

// signal is a metric that moves under some mechanism.
type signal struct {
	Name string
	// Of is what its components are: processes of one kind, webhooks, priority levels.
	Of string
	// Component is the label that names the component.
	Component string
	What      string
	Unit      string
	Expr      string
	// Over is a fixed bound from which it is off; else it is compared with the calm time.
	Over *float64
	// Least is the least change that matters, Times the least ratio to the calm median.
	Least, Times float64
	// Down: it is off where it falls, by Share of the calm median at the least.
	Down  bool
	Share float64
	// Event: one scrape is enough.
	Event bool
	// Symptom: users notice it, and something must explain it.
	Symptom bool
}

func (c catalogue) signal(name string) *signal {
	at := slices.IndexFunc(c.Signals, func(s signal) bool { return s.Name == name })
	if at < 0 {
		return nil
	}
	return &c.Signals[at]
}

func (s *signal) hold() int {
	if s.Event {
		return 1
	}
	return held
}

// anyJob matches the jobs of all components.
const anyJob = `job=~"etcd|kube-apiserver|kube-controller-manager|kube-scheduler|cloud-controller-manager|metrics-server|loadgen"`

// query is the signal's PromQL with a range of rates.
func (s *signal) query(window time.Duration) string {
	return strings.NewReplacer("$range", model.Duration(window.Truncate(time.Millisecond)).String(), "$age", fmt.Sprintf("%g", window.Seconds()), "$any", anyJob).Replace(s.Expr)
}

// known is the catalogue that ships.
var known = func() catalogue {
	c, err := parse(catalogueYAML)
	if err != nil {
		panic(err)
	}
	return c
}()

func parse(text []byte) (c catalogue, err error) {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&c); err != nil {
		return c, fmt.Errorf("catalogue.yaml: %w", err)
	}
	for i := range c.Mechanisms {
		m := &c.Mechanisms[i]
		var moves []string
		for _, name := range m.Moves {
			if group, ok := c.Groups[name]; ok {
				moves = append(moves, group...)
			} else {
				moves = append(moves, name)
			}
		}
		m.Moves = moves
	}
	return c, nil
}
