// Package chart draws numbers over time: units and number formats, scales and
// their ticks, lines, phases, marks, bars and waterfalls, as parts of a page or as
// an SVG that stands alone. It knows values, not runs: what a run's report holds
// is package report's.
package chart
