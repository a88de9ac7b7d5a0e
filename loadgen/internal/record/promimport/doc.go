// Package promimport records from a Prometheus that scrapes the cluster already, instead
// of scraping it a second time. Samples are copied into the run's archive: judging
// queries no network, and what was not copied is no data.
//
// # Boundaries
//
// At a phase's boundary the run waits, without the phase's load, until every target was
// scraped once more. Those scrapes are copied a second time under the boundary's own
// time, so that all targets have samples of one moment, as in package record. What other
// clients do between a scrape and that moment counts as after it.
//
// # Reconstruction
//
// A query gives samples without what a scrape knows besides; the times of up tell it. A
// series that is missing from a scrape gets a staleness marker. A counter that first
// appears gets a zero at the scrape before, if that was of the same process. up is 0
// where no scrape came for two and a half intervals or a part of the copy failed.
//
// Times are moved by the difference of the two clocks, which is asked for once.
package promimport
