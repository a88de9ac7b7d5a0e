package result

import (
	"fmt"
	"time"
)

// RemoteWrite counts the samples that a run sent to a remote-write receiver.
type RemoteWrite struct {
	URL        string    `json:"url"`
	Sent       int64     `json:"sentSamples"`
	Refused    int64     `json:"refusedSamples,omitempty"`
	Unsent     int64     `json:"unsentSamples,omitempty"`
	UnsentFrom time.Time `json:"unsentFrom,omitzero"` // time of the first unsent sample
	Error      string    `json:"error,omitempty"`
}

// Lost describes, in one line, the samples that the receiver lacks and how to send them. It returns "" if the receiver
// has all samples.
func (w *RemoteWrite) Lost(dir string) string {
	switch {
	case w == nil || w.Refused == 0 && w.Unsent == 0:
		return ""
	case w.Unsent == 0:
		return fmt.Sprintf("remote write: %s rejected %d samples and accepted %d: %s", w.URL, w.Refused, w.Sent, w.Error)
	}
	return fmt.Sprintf("remote write: %d samples were not sent to %s, %d were (send the missing samples with `loadgen export %s --format remote-write --remote-write URL --start %s`)",
		w.Unsent, w.URL, w.Sent, dir, w.UnsentFrom.Format(time.RFC3339Nano))
}
