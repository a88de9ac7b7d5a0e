package scrape

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// exposition returns the text of n series, alternately counters and histograms. In each scrape every tenth value has
// changed.
func exposition(n, scrape int) string {
	var b strings.Builder
	for family := 0; n > 0; family++ {
		fmt.Fprintf(&b, "# HELP etcd_server_%d_seconds Of a test.\n# TYPE etcd_server_%d_seconds histogram\n", family, family)
		for i := range min(n, 100) {
			v := family + i
			if i%10 == 0 {
				v += scrape
			}
			fmt.Fprintf(&b, "etcd_server_%d_seconds_bucket{verb=\"GET\",group=\"apps\",resource=\"deployments\",scope=\"namespace\",le=\"%d\"} %d\n", family, i, v)
		}
		n -= 100
	}
	return b.String()
}

// Series that appear, disappear or move between other series have the values of their lines.
func TestLinesThatMove(t *testing.T) {
	const seed = 11
	t.Logf("seed %d", seed)
	draw := rand.New(rand.NewPCG(seed, 1))
	s := newStub(t)
	b := newBench(t, Options{}, s.target(etcd))
	type scrape struct {
		at     time.Time
		values map[string]int
	}
	var all []scrape
	for range 40 {
		values, text := map[string]int{}, "# TYPE etcd_server_x gauge\n"
		names := draw.Perm(30)
		if draw.IntN(2) == 0 { // mostly in order
			for i := range names {
				names[i] = i
			}
		}
		for _, name := range names {
			if draw.IntN(4) == 0 {
				continue
			}
			key := fmt.Sprintf("n%d", name)
			values[key] = draw.IntN(3)
			text += fmt.Sprintf("etcd_server_x{a=\"%s\"} %d\n", key, values[key])
		}
		if draw.IntN(8) == 0 {
			text += "etcd_server_x{a=\"broken\"} five\n" // nothing of this scrape is stored
			values = nil
		}
		s.says(100, text)
		all = append(all, scrape{b.scrape(time.Second), values})
	}
	a := b.archive()
	for i, want := range all {
		samples, err := a.Instant(t.Context(), "etcd_server_x", want.at)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]int{}
		for _, s := range samples {
			got[s.Labels["a"]] = int(s.V)
		}
		if len(got) != len(want.values) {
			t.Errorf("scrape %d has %d series, want %d", i, len(got), len(want.values))
		}
		for name, v := range want.values {
			if got[name] != v {
				t.Errorf("scrape %d: %s is %d, want %d", i, name, got[name], v)
			}
		}
	}
}

// BenchmarkScrape stores an exposition with as many kept series as an API server's.
func BenchmarkScrape(b *testing.B) {
	const n = 6000
	s := newStub(b)
	r := newBench(b, Options{}, s.target(etcd))
	texts := [2]string{exposition(n, 0), exposition(n, 1)}
	s.says(100, texts[1])
	r.scrape(time.Second)
	b.ReportAllocs()
	i := 0
	for b.Loop() {
		s.says(100, texts[i%2])
		i++
		r.scrape(5 * time.Second)
		<-s.seen
	}
}
