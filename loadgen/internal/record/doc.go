// Package record keeps what a run did, in its directory: every scrape of every
// component and of the generator itself, as a Prometheus TSDB; the timeline of
// events; and the generator's own cost.
//
// The scrape loop is our own; parsing, storage and PromQL are Prometheus'. Its
// scrape.Manager does not fit for three reasons. A gate compares the end of a
// phase with its start, so both must be scrapes, taken when the phase says so,
// with one timestamp for all targets (ScrapeNow). A lost scrape must be
// counted, not only stored as up=0, because a run with one cannot pass. And
// the loop runs beside what it measures: unwanted families are
// skipped before a single label is built (an API server exposes 17,500 lines).
//
// What Prometheus would do is kept otherwise: labels job and instance, up and
// the scrape_* series, staleness markers when a series or a target goes away.
//
// # Zero injection
//
// A counter that first appears in a scrape has counted since some moment after
// the scrape before, in which it was not there. PromQL cannot know that and
// would lose its first value. So its series is given a 0 at the time of the
// scrape before, if that was a scrape of the same process
// (process_start_time_seconds is unchanged): the semantics of Prometheus'
// created-timestamp-zero-ingestion, for targets that export no created
// timestamps. increase() over a phase is then exact.
//
// # Windows
//
// A phase is the stretch between two boundary scrapes. PromQL's ranges are
// open on the left, so the range that takes both in is their distance and one
// millisecond more (Window); increase() over it extrapolates by that
// millisecond at most, which is rate/1000 counts.
package record
