// Package breakdown splits the mean time that a client waited between the generator, the
// connection and the layers of the API server, from the generator's measurements, the
// archive and the audit log's summary. Quantiles do not add up and are not split.
// docs/reference/breakdown.md has formula and source of each part.
package breakdown
