package diagnosis

import (
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql/promqltest"
)

// A counter that is not there before it first counts has a rate from then on, unless its process was not scraped before.
func TestRateOfANewCounter(t *testing.T) {
	s := known.signal("webhook-open")
	window := 2*step + time.Millisecond
	promqltest.RunTest(t, `
load 5s
  up{job="kube-apiserver", instance="a"} 1x40
  up{job="kube-apiserver", instance="b"} _x20 1x20
  apiserver_admission_webhook_fail_open_count{job="kube-apiserver", instance="a", name="new"} _x10 20 40x29
  apiserver_admission_webhook_fail_open_count{job="kube-apiserver", instance="a", name="old"} 7x9 27 47x29
  apiserver_admission_webhook_fail_open_count{job="kube-apiserver", instance="b", name="unseen"} _x20 500x20

eval range from 50s to 70s step 5s `+s.query(window)+`
  {name="new"} 1.9998000199980002 3.9996000399960003 2 0 0
  {name="old"} 2 4 2 0 0

eval range from 95s to 110s step 5s `+s.query(window)+`
  {name="new"} 0 0 0 0
  {name="old"} 0 0 0 0
  {name="unseen"} _ _ 0 0
`, promqltest.NewTestEngine(t, false, 0, 1000))
}
