package scrape

import (
	"bytes"
	"math"
	"strconv"

	"github.com/prometheus/prometheus/model/labels"
)

// lines holds the kept lines of a /metrics response, and the positions of the known series in these lines.
type lines struct {
	text  []byte
	known []knownLine
}

// knownLine is the line text[from:to] of a known series. text[space] is the space between the series and the value.
type knownLine struct {
	from, space, to int
	series          *series
	value           float64
}

// remember keeps the lines of this scrape so that the next scrape can compare its lines with them.
func (t *target) remember() {
	t.now, t.before = t.before, t.now
	for i, l := range t.before.known {
		l.series.line = i
	}
}

// parse stores the samples of the kept lines. Successive responses have the same series in the same order, and most
// values do not change. parse therefore compares each line with the corresponding line of the previous response. If
// only the value differs, it parses only the value.
func (b *batch) parse() error {
	b.others, b.now.known = b.others[:0], b.now.known[:0]
	unknown := false
	text := b.now.text
	for from := 0; from < len(text); {
		to := len(text)
		if i := bytes.IndexByte(text[from:], '\n'); i >= 0 {
			to = from + i
		}
		line := text[from:to]
		known, err := b.addKnown(line, from)
		if err != nil {
			return err
		}
		if !known {
			b.others = append(b.others, text[from:min(to+1, len(text))]...)
			unknown = unknown || len(line) > 0 && line[0] != '#'
		}
		from = to + 1
	}
	if !unknown {
		return nil
	}
	return b.parseOthers(b.others)
}

// addKnown stores the sample of a line. known is false, and nothing is stored, if the series is unknown or if the line
// does not consist of a name, labels and a number.
func (b *batch) addKnown(line []byte, from int) (known bool, err error) {
	l, ok := b.read(line)
	if !ok {
		return false, nil
	}
	if err := b.append(l.series, labels.EmptyLabels(), b.at, l.value); err != nil {
		return false, err
	}
	l.series.seen = b.scrape
	b.count++
	l.from, l.space, l.to = from, from+l.space, from+len(line)
	b.now.known = append(b.now.known, l)
	return true, nil
}

// read parses a line of a known series. ok is false if the line needs the full parser.
func (b *batch) read(line []byte) (l knownLine, ok bool) {
	if len(line) == 0 || line[0] == '#' {
		return l, false
	}
	var last []byte // the expected name and labels on this line
	if b.expect < len(b.before.known) {
		old := &b.before.known[b.expect]
		if text := b.before.text[old.from:old.to]; bytes.Equal(line, text) && !old.series.stale {
			b.expect++
			return knownLine{space: old.space - old.from, series: old.series, value: old.value}, true
		}
		last = b.before.text[old.from:old.space]
	}
	space := bytes.LastIndexByte(line, ' ')
	if space < 0 || bytes.ContainsAny(line[space:], "xXpP_") { // formats of numbers that Go accepts, but Prometheus does not
		return l, false
	}
	l.space = space
	if last != nil && bytes.Equal(line[:space], last) {
		l.series = b.before.known[b.expect].series
		b.expect++
	} else if l.series = b.series[string(line[:space])]; l.series != nil {
		b.expect = l.series.line + 1
	}
	if l.series == nil || l.series.stale {
		return l, false
	}
	var err error
	l.value, err = strconv.ParseFloat(string(line[space+1:]), 64)
	return l, err == nil && !math.IsNaN(l.value)
}
