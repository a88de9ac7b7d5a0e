package watch

import (
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// counters are the counters of a set of watches, labelled load.
var counters = []struct {
	name, help string
	value      func(*totals) int64
}{
	{
		"stormglass_watch_events_total", "Watch events read, bookmarks and foreign ones included.",
		func(t *totals) int64 { return t.events },
	},
	{"stormglass_watch_bytes_total", "Bytes of watch events read.", func(t *totals) int64 { return t.bytes }},
	{
		"stormglass_watch_delivered_total", "First deliveries of measured writes.",
		func(t *totals) int64 { return t.delivered },
	},
	{
		"stormglass_watch_lost_total", "Deliveries of acknowledged writes that were given up, after a drain or when the write left the ledger.",
		func(t *totals) int64 { return t.lost },
	},
	{
		"stormglass_watch_duplicated_total", "Further deliveries of the same change to the same watch.",
		func(t *totals) int64 { return t.duplicated },
	},
	{
		"stormglass_watch_reordered_total", "Events older than one that the same watch has seen.",
		func(t *totals) int64 { return t.reordered },
	},
	{
		"stormglass_watch_relists_total", "Watches that had to list again (410).",
		func(t *totals) int64 { return t.relists },
	},
	{
		"stormglass_watch_reconnects_total", "Watches that ended and were resumed by resourceVersion.",
		func(t *totals) int64 { return t.reconnects },
	},
	{
		"stormglass_watch_malformed_total", "Watch streams given up because what they brought was no event.",
		func(t *totals) int64 { return t.malformed },
	},
}

// collector exposes a set of watches. The counts of connections are added up at each scrape.
type collector struct {
	set           *Watches
	counts        []*prometheus.Desc // as counters
	open, latency *prometheus.Desc
}

func newCollector(w *Watches) *collector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, nil, prometheus.Labels{"load": w.load.Name})
	}
	c := &collector{
		set:     w,
		open:    desc("stormglass_watches_open", "Watches that are established."),
		latency: desc("stormglass_watch_delivery_seconds", "From a write's acknowledgement to its delivery on a watch."),
	}
	for _, m := range counters {
		c.counts = append(c.counts, desc(m.name, m.help))
	}
	return c
}

func (c *collector) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, out) }

func (c *collector) Collect(out chan<- prometheus.Metric) {
	t := c.set.totals()
	for i, m := range counters {
		out <- prometheus.MustNewConstMetric(c.counts[i], prometheus.CounterValue, float64(m.value(&t)))
	}
	out <- prometheus.MustNewConstMetric(c.open, prometheus.GaugeValue, float64(c.set.Open()))
	out <- exposedMetric{c.latency, c.set.exposed, c.set.load.Name}
}

func (c *collector) register(reg prometheus.Registerer) error {
	if reg == nil {
		return nil
	}
	if err := reg.Register(c); err != nil {
		return fmt.Errorf("register metrics of load %s: %w", c.set.load.Name, err)
	}
	return nil
}

type exposedMetric struct {
	desc *prometheus.Desc
	h    *exposed
	load string
}

func (m exposedMetric) Desc() *prometheus.Desc { return m.desc }

func (m exposedMetric) Write(out *dto.Metric) error {
	name := "load"
	out.Label = []*dto.LabelPair{{Name: &name, Value: &m.load}}
	m.h.write(out)
	return nil
}
