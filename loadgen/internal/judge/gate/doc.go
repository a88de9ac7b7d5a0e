// Package gate judges a run: each gate passes, fails, or has no data, which is
// never a pass. It reads the run's archive and measurements and nothing else:
// no network, no clock. The same directory is judged the same a year later.
//
// # A gate's value
//
// Most objectives have one value for each phase in `over`, and the gate takes
// the worst of them, so that a calm phase does not dilute a storm. Objectives
// that count (too-many-requests, leader-changes, generator-cpu) look at
// stretches of consecutive phases as one window, the moments between phases
// included. Ratios of the generator's own requests are taken over all requests
// of all phases in `over`.
//
// A breach that was seen is a failure, whatever else is missing. Otherwise
// anything missing is "no data":
//
//   - a target that the expression reads did not answer a scrape in the
//     window, or was not scraped at its boundaries, or is another process at
//     its end than at its start, and no fault of the scenario's accounts for it
//     (loadgen/internal/timeline; what is then known of it must be enough: gap.go);
//   - a phase was interrupted or never reached;
//   - the expression gives nothing, NaN, an infinity, or more than one series;
//   - nothing happened: no observation in the window. Phases named in `over`
//     must all have data. Where `over` is left out, or names every phase,
//     phases in which nothing happened are passed over, but one at least must
//     have data.
//   - the load that was asked for sent nothing;
//   - the end of a node failure was not seen, even if that of another was.
package gate
