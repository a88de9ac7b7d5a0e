// Package breakdown splits what a client waited for between the generator, the
// connection and the layers of the API server. It works on what a run has
// left behind: the generator's own measurements, the archive of the server's
// metrics, and a summary of its audit log if that was on.
//
// Only means are split: they add up, quantiles do not. The client's side is
// exact, from the sums of its histograms. The server's is sum over count of
// its histograms between the scrapes at a phase's boundaries. What no figure
// accounts for is a figure itself. docs/reference/breakdown.md is the reference of all
// parts: formula, source, and what each cannot tell.
package breakdown
