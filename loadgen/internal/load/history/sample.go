package history

import (
	"strconv"
	"time"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient/h2conn"
	"github.com/stormglass/stormglass/loadgen/internal/load"
)

// sample adds a request, with its duration from its sending, to the samples. Good are 2xx answers and conflicts,
// which clients provoke. Final reads are left out.
func (l *Load) sample(answer *h2conn.Response, err error, good bool, took time.Duration) {
	own := min(l.stalls.Late(time.Now()), took)
	switch {
	case good:
		l.requests.Succeeded(took, own)
	case answer == nil:
		l.requests.Failed(load.OutcomeOf(err).String(), took, own)
	case load.Outcome(answer.Status).Success():
		l.requests.Failed(load.Malformed.String(), took, own)
	default:
		l.requests.Failed(strconv.Itoa(answer.Status), took, own)
	}
}
