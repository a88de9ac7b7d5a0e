package mirror

import (
	"bufio"
	"context"
	"errors"
	"io"
	"iter"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/stormglass/stormglass/controlplane/internal/leadership"
	"github.com/stormglass/stormglass/controlplane/internal/process"
)

// pollEvery is the interval at which copyLog checks a followed log for new data.
const pollEvery = 100 * time.Millisecond

// stampForm is the format of the kubelet's time stamps: RFC 3339 with nine digits for the fraction of a second.
const stampForm = "2006-01-02T15:04:05.000000000Z07:00"

// copyLog copies the output of the process `child` from its component's log at path to w. It stops where the output of
// the process `next` begins; nil means that there is no next process. With o.Follow, it continues until ctx ends, even
// if the process restarts. A line without a time gets the time of the previous line.
func copyLog(ctx context.Context, path string, child, next *process.Child, o *corev1.PodLogOptions, w io.Writer) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if next != nil {
		end = next.From()
	}
	from := child.From()
	written := io.NewSectionReader(f, from, end-from)
	var skip int64
	if o.TailLines != nil {
		for range lines(written) {
			skip++
		}
		skip -= *o.TailLines
	}
	_, _ = written.Seek(0, io.SeekStart) // within bounds
	var source io.Reader = written
	if o.Follow && next == nil {
		_, _ = f.Seek(from, io.SeekStart) // within bounds
		source = growing{ctx, f}
	}
	var since time.Time
	switch {
	case o.SinceTime != nil:
		since = o.SinceTime.Time
	case o.SinceSeconds != nil:
		since = time.Now().Add(-time.Duration(*o.SinceSeconds) * time.Second)
	}
	at := child.Started
	for line, err := range lines(source) {
		if err != nil {
			return err
		}
		if t := leadership.LineTime(line, time.Now()); !t.IsZero() {
			at = t
		}
		if skip--; skip >= 0 || at.Before(since) {
			continue
		}
		if o.Timestamps {
			line = at.UTC().Format(stampForm) + " " + line
		}
		if _, err := io.WriteString(w, line); err != nil {
			return err
		}
	}
	return nil
}

// lines yields the lines of r with their line ends. The last line may have no line end.
func lines(r io.Reader) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for from := bufio.NewReader(r); ; {
			line, err := from.ReadString('\n')
			ended := errors.Is(err, io.EOF)
			if ended {
				err = nil
			}
			if (line != "" || err != nil) && !yield(line, err) || ended || err != nil {
				return
			}
		}
	}
}

// growing reads a file while it grows: at the end of the file it waits for more data, until ctx ends. After a rotation
// it continues at the beginning of the file.
type growing struct {
	ctx  context.Context
	file *os.File
}

func (g growing) Read(p []byte) (int, error) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if n, err := g.file.Read(p); n > 0 || err != io.EOF {
			return n, err
		}
		select {
		case <-g.ctx.Done():
			return 0, io.EOF
		case <-tick.C:
			at, _ := g.file.Seek(0, io.SeekCurrent)
			if info, err := g.file.Stat(); err == nil && info.Size() < at {
				_, _ = g.file.Seek(0, io.SeekStart) // within bounds
			}
		}
	}
}
