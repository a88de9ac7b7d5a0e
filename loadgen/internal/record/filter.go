package record

import "bytes"

// filterFamilies appends to dst the lines of text whose family is kept, and counts the
// series lines in all of text. It only cuts lines and compares names, as most of an API
// server's exposition is dropped here.
func filterFamilies(dst, text []byte, keep func(family string) bool) (kept []byte, series int) {
	var family []byte // of the last TYPE or HELP line
	keeping := false
	for len(text) > 0 {
		line := text
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			line = text[:i+1]
		}
		text = text[len(line):]
		if line[0] != '#' {
			if len(bytes.TrimSpace(line)) == 0 {
				continue
			}
			series++
			if !belongs(line, family) { // a series without a TYPE line
				family = seriesName(line)
				keeping = keep(string(family))
			}
			if keeping {
				dst = append(dst, line...)
			}
			continue
		}
		name, isType := metadataName(line)
		if name == nil {
			continue
		}
		if !bytes.Equal(name, family) {
			family, keeping = name, keep(string(name))
		}
		if isType && keeping {
			dst = append(dst, line...)
		}
	}
	return dst, series
}

// metadataName is the family a "# TYPE" or "# HELP" line is about.
func metadataName(line []byte) (name []byte, isType bool) {
	rest, isType := bytes.CutPrefix(line, []byte("# TYPE "))
	if !isType {
		var isHelp bool
		if rest, isHelp = bytes.CutPrefix(line, []byte("# HELP ")); !isHelp {
			return nil, false
		}
	}
	return rest[:nameEnd(rest)], isType
}

func seriesName(line []byte) []byte { return line[:nameEnd(line)] }

func nameEnd(b []byte) int {
	if i := bytes.IndexAny(b, "{ \t\n"); i >= 0 {
		return i
	}
	return len(b)
}

// belongs reports whether a series line is of the family.
func belongs(line, family []byte) bool {
	if len(family) == 0 || !bytes.HasPrefix(line, family) {
		return false
	}
	rest := seriesName(line[len(family):])
	if len(rest) == 0 {
		return true
	}
	for _, s := range seriesSuffixes {
		if string(rest) == s {
			return true
		}
	}
	return false
}
