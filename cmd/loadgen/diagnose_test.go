package main

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stormglass/stormglass/loadgen/result"
)

// The present is followed past a disturbance and an error, and each is said once.
func TestFollowGoesOn(t *testing.T) {
	sick := result.Diagnosis{Answer: result.Diagnosed, Causes: []result.Cause{{Kind: "killed", Components: []string{"etcd-0"}}}}
	answers := []struct {
		d   result.Diagnosis
		err error
	}{{d: result.Diagnosis{Answer: result.Healthy}}, {d: sick}, {d: sick}, {err: errors.New("refused")}, {err: errors.New("refused")}, {d: result.Diagnosis{Answer: result.Healthy}}}
	ctx, stop := context.WithCancel(t.Context())
	var said []string
	diagnose := func(context.Context) (result.Diagnosis, error) {
		next := answers[0]
		if answers = answers[1:]; len(answers) == 0 {
			defer stop() // seen at the next wait
		}
		return next.d, next.err
	}
	show := func(d result.Diagnosis) error { said = append(said, d.Answer); return nil }
	err := follow(ctx, time.Millisecond, diagnose, show, func(err error) { said = append(said, err.Error()) })
	if want := []string{result.Healthy, result.Diagnosed, "refused"}; err != nil || !slices.Equal(said, want) {
		t.Errorf("%v: it said %s, want %s", err, said, want)
	}
}
