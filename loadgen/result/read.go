package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/stormglass/stormglass/internal/userfile"
)

// maxObjects is the maximum number of objects and lists in a JSON document. It limits the memory for reading a
// document: an empty object has three bytes in the file but takes up to a kilobyte of memory. The objects that a run
// writes have at least a hundred bytes.
const maxObjects = 1_000_000

// maxBytes returns the maximum size of a file, by its extension. The limits are larger than any file of a run with a
// thousand loads in ten phases, or with 200 loads for an hour.
func maxBytes(name string) int64 {
	switch filepath.Ext(name) {
	case ".yaml":
		return 4 * userfile.Text // the file includes all default values
	case ".json":
		return 64 << 20
	}
	return 256 << 20
}

// Damaged is the error for a file in a run's directory that is missing or that the run cannot have written.
type Damaged struct {
	File string // path of the file in the run directory
	Err  error  // what is wrong with the file, with line and byte if known
}

// Error returns the file and the error in it, in one line.
func (d *Damaged) Error() string {
	if errors.Is(d.Err, fs.ErrNotExist) {
		return d.File + " is missing"
	}
	return d.File + " is damaged: " + strings.ReplaceAll(d.Err.Error(), "\n", "; ")
}

// Unwrap returns the cause.
func (d *Damaged) Unwrap() error { return d.Err }

// Unjudged returns true: a run with a damaged file cannot be judged.
func (d *Damaged) Unjudged() bool { return true }

// Checked is data whose method Check returns an error if a run cannot have written the data.
type Checked interface{ Check() error }

// ReadFile reads a file of the run in dir. Every error is a *Damaged.
func ReadFile(dir, name string) ([]byte, error) {
	data, err := userfile.Read(filepath.Join(dir, name), maxBytes(name))
	if err != nil {
		return nil, &Damaged{name, err}
	}
	return data, nil
}

// ReadJSON reads a JSON file of the run in dir and checks its content. Every error is a *Damaged.
func ReadJSON(dir, name string, v Checked) error {
	data, err := ReadFile(dir, name)
	if err != nil {
		return err
	}
	return Decode(name, data, v)
}

// Decode is like ReadJSON, but decodes data instead of reading the file. It uses name only in errors.
func Decode(name string, data []byte, v Checked) error {
	if bytes.Count(data, []byte("{"))+bytes.Count(data, []byte("[")) > maxObjects {
		return &Damaged{name, fmt.Errorf("it has more objects and lists than the maximum of %d", maxObjects)}
	}
	err := json.Unmarshal(data, v)
	if err != nil {
		err = located(err, data)
	} else {
		err = v.Check()
	}
	if err != nil {
		return &Damaged{name, err}
	}
	return nil
}

// ReadLines reads a file of the run in dir that has one JSON document per line. It skips an incomplete last line, which
// a killed run may leave. Every error is a *Damaged.
func ReadLines[T Checked](dir, name string) ([]T, error) {
	data, err := ReadFile(dir, name)
	if err != nil {
		return nil, err
	}
	data = data[:bytes.LastIndexByte(data, '\n')+1]
	var all []T
	n := 0
	for line := range bytes.Lines(data) {
		n++
		var v T
		err := json.Unmarshal(line, &v)
		if err != nil {
			err = located(err, line)
		} else {
			err = v.Check()
		}
		if err != nil {
			return nil, &Damaged{name, fmt.Errorf("line %d: %w", n, err)}
		}
		all = append(all, v)
	}
	return all, nil
}

// located adds the position of a JSON error in data: the byte, and the line if data has several lines.
func located(err error, data []byte) error {
	at := int64(-1)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		at = syntax.Offset
	} else if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		at = kind.Offset
	}
	if at < 0 || at > int64(len(data)) {
		return err
	}
	where := fmt.Sprintf("byte %d", at)
	if before := data[:at]; bytes.Contains(data[:max(len(data)-1, 0)], []byte("\n")) {
		n := bytes.Count(before, []byte("\n"))
		where = fmt.Sprintf("line %d, byte %d", n+1, at)
	}
	return fmt.Errorf("%s: %w", where, err)
}
