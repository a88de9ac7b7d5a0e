package cluster

import "slices"

// ScrapedElsewhere says that the metrics of these instances are read from a
// Prometheus that scrapes them: nothing is scraped here.
func (t *Target) ScrapedElsewhere(prometheus string, instances []string) {
	t.Scrape = nil
	t.Cluster.Prometheus, t.Cluster.Targets = prometheus, instances
	t.Notes = slices.DeleteFunc(t.Notes, func(n string) bool { return slices.Contains(t.scrapeNotes, n) })
}
