// Package promimport records from a Prometheus that scrapes the cluster already,
// instead of scraping it a second time.
//
// What it has is copied into the run's archive and not asked for by the gates:
// a run is judged from its directory alone, the same a year later, when that
// Prometheus has forgotten it. So gates, breakdown and report read one kind of
// archive, and whatever was not copied is not there: no data.
//
// # Boundaries
//
// A phase is the stretch between two scrapes (package record). Another's
// scrapes come when they come, so the boundary waits for them: from the moment
// it is asked for until every target was scraped once more. No load of the
// phase runs meanwhile. The scrapes that it waited for, the first of each target
// that shows all that came before, are copied a second time under the
// boundary's own time, as every target's of one moment, like the
// boundaries of a run's own scrapes. What other clients do between a
// target's scrape and that moment counts as what comes after it.
//
// # What is made up for
//
// A query over HTTP gives samples without what a scrape knows besides, so that
// is worked out again from the times of up, which every scrape writes. A series
// that is not in a scrape ends there, with a staleness marker. A counter that
// first shows in one is given a zero at the one before, if that was of the same
// process. Where no scrape came for two and a half intervals, or a part of the
// copy failed, the target was down: up is 0 there, which is a lost scrape to
// every gate.
//
// Times are moved by the difference of the two clocks, which is asked for once.
package promimport
