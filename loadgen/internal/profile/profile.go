// Package profile takes pprof profiles of components and of the generator itself.
package profile

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// Kinds of profile that need special treatment.
const (
	cpu   = "cpu"
	mutex = "mutex"
	block = "block"
)

// maxBytes is the maximum size of a profile in bytes. A heap profile of a large API server has about a megabyte.
const maxBytes = 64 << 20

// transferWithin is the time limit for receiving a profile from a process, in addition to the duration of the profile.
const transferWithin = 20 * time.Second

// Source is a process that can be profiled.
type Source struct {
	// Component is the name of the process, such as "kube-apiserver-0". Kind is its program, such as "kube-apiserver".
	Component, Kind string

	take func(ctx context.Context, kind string, length time.Duration, into io.Writer) error
}

// Remote returns the Source for a process that serves profiles below the URL base, like net/http/pprof. client must
// have permission to get the profiles.
func Remote(component, kind, base string, client *http.Client) Source {
	return Source{component, kind, func(ctx context.Context, kind string, length time.Duration, into io.Writer) error {
		return fetch(ctx, client, address(base, kind, length), into)
	}}
}

// Take takes a profile and returns it as a gzipped protocol buffer. length is the duration of a CPU profile, in whole
// seconds; other kinds ignore it. A profile without samples is an error.
func (s Source) Take(ctx context.Context, kind string, length time.Duration) ([]byte, error) {
	if kind != cpu {
		length = 0
	}
	ctx, cancel := context.WithTimeoutCause(ctx, length+transferWithin, fmt.Errorf("no response within %s", length+transferWithin))
	defer cancel()
	var into bytes.Buffer
	if err := s.take(ctx, kind, length, &into); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, err
	}
	n, err := samples(into.Bytes())
	switch {
	case err != nil:
		return nil, fmt.Errorf("the response of %s is not a profile: %w", s.Component, err)
	case n == 0:
		return nil, errors.New(emptiness(s.Component, kind))
	}
	return into.Bytes(), nil
}

// emptiness returns the reason why a profile has no samples.
func emptiness(component, kind string) string {
	switch kind {
	case cpu:
		return component + " used no CPU time during the profile"
	case mutex, block:
		return component + " sampled no " + kind + " events"
	}
	return component + " sent a profile without samples"
}

func address(base, kind string, length time.Duration) string {
	base = strings.TrimSuffix(base, "/") + "/"
	if kind == cpu {
		return base + "profile?" + url.Values{"seconds": {strconv.Itoa(int(length / time.Second))}}.Encode()
	}
	return base + url.PathEscape(kind)
}

func fetch(ctx context.Context, client *http.Client, at string, into io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "stormglass-profiles")
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		said, _ := io.ReadAll(io.LimitReader(resp.Body, 200)) // a read error only shortens the message
		return refused(resp, string(said))
	}
	n, err := io.Copy(into, io.LimitReader(resp.Body, maxBytes))
	if err == nil && n == maxBytes {
		err = fmt.Errorf("more than %d MiB", maxBytes>>20)
	}
	return err
}

func refused(resp *http.Response, said string) error {
	switch resp.StatusCode {
	case http.StatusForbidden, http.StatusUnauthorized:
		return fmt.Errorf("%s: the user is not permitted to get the URL %s", resp.Status, resp.Request.URL.Path)
	case http.StatusNotFound:
		return fmt.Errorf("%s: it serves no profiles", resp.Status)
	}
	first, _, _ := strings.Cut(strings.TrimSpace(said), "\n")
	return fmt.Errorf("%s: %s", resp.Status, cmp.Or(first, "without a reason"))
}

// sampleField is the number of the field `sample` in the message Profile of pprof's profile.proto.
const sampleField = 2

func samples(data []byte) (n int, err error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return 0, err
	}
	message, err := io.ReadAll(io.LimitReader(r, 8*maxBytes))
	if err != nil {
		return 0, err
	}
	for len(message) > 0 {
		field, kind, head := protowire.ConsumeTag(message)
		if head < 0 {
			return n, protowire.ParseError(head)
		}
		body := protowire.ConsumeFieldValue(field, kind, message[head:])
		if body < 0 {
			return n, protowire.ParseError(body)
		}
		if field == sampleField {
			n++
		}
		message = message[head+body:]
	}
	return n, nil
}
