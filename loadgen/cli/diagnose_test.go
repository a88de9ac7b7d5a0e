package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/scrape/promimport"
	"github.com/stormglass/stormglass/loadgen/result"
)

// followed returns the lines that follow prints for answers; the last answer is not shown.
func followed(t *testing.T, answers []answer) (said []string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	diagnose := func(context.Context) (result.Diagnosis, error) {
		next := answers[0]
		if answers = answers[1:]; len(answers) == 0 {
			defer stop() // takes effect at the next wait
		}
		return next.d, next.err
	}
	show := func(d result.Diagnosis) error { said = append(said, d.Answer); return nil }
	if err := follow(ctx, time.Millisecond, diagnose, show, func(err error) { said = append(said, err.Error()) }); err != nil {
		t.Error(err)
	}
	return said
}

type answer struct {
	d   result.Diagnosis
	err error
}

// The diagnosis of the present continues after a disturbance and an error, and reports each once.
func TestFollowGoesOn(t *testing.T) {
	healthy := answer{d: result.Diagnosis{Answer: result.Healthy}}
	sick := answer{d: result.Diagnosis{Answer: result.Diagnosed, Causes: []result.Cause{{Kind: "killed", Components: []string{"etcd-0"}}}}}
	refused := answer{err: errors.New("refused")}
	said := followed(t, []answer{healthy, sick, sick, refused, refused, healthy})
	if want := []string{result.Healthy, result.Diagnosed, "refused"}; !slices.Equal(said, want) {
		t.Errorf("follow printed %s, want %s", said, want)
	}
}

// An answer with other symptoms or limits counts as a new answer; a symptom that returns does not.
func TestFollowShowsOtherSymptomsAndLimits(t *testing.T) {
	reads, writes := result.Evidence{What: "reads", Component: "kube-apiserver-0"}, result.Evidence{What: "writes", Component: "kube-apiserver-0"}
	unknown := func(symptoms ...result.Evidence) answer {
		return answer{d: result.Diagnosis{Answer: result.Unknown, Symptoms: symptoms}}
	}
	full := answer{d: result.Diagnosis{Answer: result.Healthy, Limits: []result.Cause{{Kind: "processors", Components: []string{"loadgen"}}}}}
	healthy := answer{d: result.Diagnosis{Answer: result.Healthy}}
	said := followed(t, []answer{unknown(reads), unknown(reads, reads), unknown(reads, writes), healthy, full, full, healthy})
	if want := []string{result.Unknown, result.Unknown, result.Healthy, result.Healthy}; !slices.Equal(said, want) {
		t.Errorf("follow printed %s, want %s", said, want)
	}
}

// An observer that was restarted at another address is found.
func TestRestartedObserverIsFound(t *testing.T) {
	gone, again := httptest.NewServer(http.NotFoundHandler()), httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"status":"success","data":{"resultType":"matrix","result":[]}}`) // nothing was scraped yet
	}))
	gone.Close()
	t.Cleanup(again.Close)
	addresses := []string{gone.URL, again.URL}
	diagnose, err := diagnoseObserved(func() (string, error) {
		next := addresses[0]
		addresses = addresses[1:]
		return next, nil
	}, promimport.Config{}, diagnoseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := diagnose(t.Context()); exitcode.Of(err) != exitcode.NoData || !strings.Contains(err.Error(), again.URL) {
			t.Errorf("%v, want that %s has no data", err, again.URL)
		}
	}
}

// A usage error ends the diagnosis before its first answer. Later it does not: the cause may be a token file that is being
// replaced.
func TestFollowEndsOnBadUsageAtItsBeginning(t *testing.T) {
	usage := answer{err: exitcode.Usagef("no such file")}
	healthy := answer{d: result.Diagnosis{Answer: result.Healthy}}
	said := followed(t, []answer{healthy, usage, healthy, healthy})
	if want := []string{result.Healthy, "no such file", result.Healthy}; !slices.Equal(said, want) {
		t.Errorf("follow printed %q, want %q", said, want)
	}
	diagnose := func(context.Context) (result.Diagnosis, error) { return usage.d, usage.err }
	err := follow(t.Context(), time.Millisecond, diagnose, func(result.Diagnosis) error { return nil }, func(err error) { t.Errorf("follow reported the error %v, want it as its result", err) })
	if exitcode.Of(err) != exitcode.Usage {
		t.Errorf("%v", err)
	}
}
