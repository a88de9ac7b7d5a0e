package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"sync"
)

// stateFile is the file that records the cloud's objects: it has a line for each change. A cloud that was killed reads
// its objects from the file when it restarts.
type stateFile struct {
	mu   sync.Mutex // guards the fields below, and all kept objects
	file *os.File
	read map[string]func(stateLine) error // functions that apply a line of the file, by kind of object
}

// stateLine records the new value of an object. Without a value it records that the object was deleted.
type stateLine struct {
	Kind  string          `json:"kind"`
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value,omitempty"`
}

func openState(path string) (*stateFile, error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	return &stateFile{file: file, read: map[string]func(stateLine) error{}}, err
}

// load reads all lines of the file. It drops an incomplete last line: the cloud was killed while it wrote that line,
// before it responded to the request.
func (f *stateFile) load() error {
	decoder := json.NewDecoder(f.file)
	for {
		var line stateLine
		end := decoder.InputOffset()
		err := decoder.Decode(&line)
		switch {
		case err == io.EOF:
			return nil
		case errors.Is(err, io.ErrUnexpectedEOF):
			return f.file.Truncate(end)
		case err != nil:
			return fmt.Errorf("%s: %w", f.file.Name(), err)
		}
		if read, ok := f.read[line.Kind]; ok {
			if err := read(line); err != nil {
				return fmt.Errorf("%s: %s %s: %w", f.file.Name(), line.Kind, line.Name, err)
			}
		}
	}
}

// write appends a line to the file. When write has returned, the line is not lost if the process is killed. The caller
// holds mu.
func (f *stateFile) write(line stateLine) error {
	data, err := json.Marshal(line)
	if err == nil {
		_, err = f.file.Write(append(data, '\n'))
	}
	return err
}

func (f *stateFile) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.file.Close()
}

// kept holds the cloud's objects of one kind, by name.
type kept[T any] struct {
	file *stateFile
	kind string
	all  map[string]T
}

func keep[T any](f *stateFile, kind string) *kept[T] {
	k := &kept[T]{file: f, kind: kind, all: map[string]T{}}
	f.read[kind] = func(line stateLine) error {
		if line.Value == nil {
			delete(k.all, line.Name)
			return nil
		}
		var value T
		err := json.Unmarshal(line.Value, &value)
		k.all[line.Name] = value
		return err
	}
	return k
}

func (k *kept[T]) get(name string) (T, error) {
	k.file.mu.Lock()
	defer k.file.mu.Unlock()
	value, ok := k.all[name]
	if !ok {
		return value, &refusal{http.StatusNotFound, fmt.Sprintf("there is no %s %q", k.kind, name)}
	}
	return value, nil
}

func (k *kept[T]) list() map[string]T {
	k.file.mu.Lock()
	defer k.file.mu.Unlock()
	return maps.Clone(k.all)
}

// put stores the object with this name. `make` computes its new value from the old value, or from the zero value if the
// object is new. put refuses a new object if `quota` objects already exist; the error names these objects `what`. A
// quota of zero means unlimited.
func (k *kept[T]) put(name string, quota int, what string, make func(old T) T) error {
	k.file.mu.Lock()
	defer k.file.mu.Unlock()
	old, ok := k.all[name]
	if !ok && quota > 0 && len(k.all) >= quota {
		return &refusal{http.StatusForbidden, fmt.Sprintf("quota exceeded: %d %s already exist", len(k.all), what)}
	}
	value := make(old)
	data, err := json.Marshal(value)
	if err == nil {
		err = k.file.write(stateLine{k.kind, name, data})
	}
	if err == nil {
		k.all[name] = value
	}
	return err
}

// delete removes an object. A missing object is not an error.
func (k *kept[T]) delete(name string) error {
	k.file.mu.Lock()
	defer k.file.mu.Unlock()
	if _, ok := k.all[name]; !ok {
		return nil
	}
	err := k.file.write(stateLine{Kind: k.kind, Name: name})
	if err == nil {
		delete(k.all, name)
	}
	return err
}
