package scenario

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/stormglass/stormglass/internal/strictyaml"
	"github.com/stormglass/stormglass/internal/userfile"
)

// maxReplay is the maximum number of arrival times in a replay. This number of times takes 80 MB of memory.
const maxReplay = 10_000_000

// readReplays reads the files of all replays, including the replays of variants. Relative paths are relative to dir.
func (s *Scenario) readReplays(dir string) error {
	var errs []error
	for _, l := range s.Loads() {
		if l.Recording != "" {
			errs = append(errs, s.readRecording(l, dir))
		}
		if l.Shape.Kind != "replay" {
			continue
		}
		file := l.Shape.File
		if !filepath.IsAbs(file) {
			file = filepath.Join(dir, file)
		}
		data, err := userfile.Read(file, userfile.Replay)
		if err != nil {
			errs = append(errs, s.Errorf(l.Path+".shape.file", "a relative path is relative to the directory of the scenario file", "cannot read %s: %v", file, err))
			continue
		}
		if l.Shape.Times, err = parseReplay(file, data); err != nil {
			errs = append(errs, err)
			continue
		}
		if p := s.Phase(l.Phase); p != nil && !s.recorded {
			if first, length := l.Shape.Times[0]/l.Shape.Speed, max(p.For, p.Within); first >= length.D().Seconds() {
				errs = append(errs, s.Errorf(l.Path+".shape.file", "let the times in the file begin at 0, or set a higher speed", "the first arrival comes after %ss, but the phase ends after %s", plain(first), length))
			}
		}
	}
	if errors.Join(errs...) == nil { // otherwise the variants would report the same errors
		for _, v := range s.variants {
			errs = append(errs, v.readReplays(dir))
		}
	}
	return errors.Join(errs...)
}

// parseReplay parses the arrival times of a replay: one time in seconds on each line, in ascending order. # begins a
// comment.
func parseReplay(file string, data []byte) ([]float64, error) {
	var times []float64
	line := 0
	fail := func(hint, format string, args ...any) error {
		return &strictyaml.Error{File: file, Line: line, Msg: fmt.Sprintf(format, args...), Hint: hint}
	}
	lines := bufio.NewScanner(bytes.NewReader(bytes.TrimPrefix(data, []byte("\ufeff"))))
	for lines.Scan() {
		line++
		text, _, _ := strings.Cut(lines.Text(), "#")
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		t, err := strconv.ParseFloat(text, 64)
		switch {
		case err != nil || math.IsNaN(t) || math.IsInf(t, 0) || t < 0:
			return nil, fail("seconds since the start, such as 0.125", "%.40q is not a time", text)
		case t > maxPhase.Seconds():
			return nil, fail("write times in seconds since the start of the load; to convert timestamps, subtract the first from all", "%.40s s exceeds the maximum length of a run", text)
		case len(times) > 0 && t < times[len(times)-1]:
			return nil, fail("sort the times in ascending order, for example with sort -n", "%v is earlier than the previous time, %v", t, times[len(times)-1])
		case len(times) == maxReplay:
			return nil, fail(fmt.Sprintf("at most %d", maxReplay), "too many arrivals")
		}
		times = append(times, t)
	}
	if lines.Err() != nil { // the text is in memory, so only the length of a line can be wrong
		line++
		return nil, fail("write one number per line", "the line is longer than %d bytes", bufio.MaxScanTokenSize)
	}
	if len(times) == 0 {
		line = 0
		return nil, fail("write one time per line, such as 0.125", "the file contains no arrivals")
	}
	return times, nil
}

// Bundle returns the files that belong to the scenario, by name: the arrival times and recordings of replays. It
// changes the scenario to refer to these names. Files with different contents have different names.
func (s *Scenario) Bundle() map[string][]byte {
	files := map[string][]byte{}
	for _, l := range s.Loads() {
		l.bundleRecording(files)
		if l.Shape.Kind != "replay" || len(l.Shape.Times) == 0 { // the replay's file was not read
			continue
		}
		var text []byte
		for _, t := range l.Shape.Times {
			text = append(strconv.AppendFloat(text, t, 'g', -1, 64), '\n')
		}
		l.Shape.File = bundleName("replay-", l.Name, text) + ".txt"
		files[l.Shape.File] = text
	}
	return files
}

// bundleName returns a file name for the data of a load. The name contains a hash of the data.
func bundleName(prefix, load string, data []byte) string {
	return fmt.Sprintf("%s%s-%.4x", prefix, load, sha256.Sum256(data))
}
