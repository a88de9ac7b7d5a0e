package spans

import "testing"

// An API server may sample a request that the load did not sample. It is not a request of another client.
func TestRequestsThatTheLoadDidNotSample(t *testing.T) {
	k := NewKeeper(Limits{}, 1)
	k.BeginPhase("p", 0)
	all := writeOf(1, "POST "+namespaced+"pods", "stormglass-loadgen/v1", "/pods/ns/a", 1, 2)
	all[1].Link = Link{unsampled, ID{7: 1}}
	for _, s := range all {
		k.Span(s, 0)
	}
	k.Flush()
	if c := k.Counts(); len(k.Kept()) != 0 || c.Requests != 0 || c.Unmatched != 2 {
		t.Errorf("%d traces, counts %+v", len(k.Kept()), c)
	}
}

// An API server that does not trust the client begins a new trace. The Keeper joins its spans with the request, for
// every order of arrival.
func TestLinkedTracesAreJoined(t *testing.T) {
	r := request(1, 50, 200)
	root := server(r)
	root.Trace, root.Parent, root.Link = traceID(900), ID{}, Link{r.Trace, r.ID}
	child := root
	child.ID, child.Parent, child.Link, child.Process = id(501), root.ID, Link{}, "etcd-0"
	steps := map[byte]func(k *Keeper){
		'q': func(k *Keeper) { k.Request(r, 0) }, 'r': func(k *Keeper) { k.Span(root, 0) }, 'c': func(k *Keeper) { k.Span(child, 0) },
	}
	for _, order := range []string{"qrc", "qcr", "rqc", "rcq", "crq", "cqr"} {
		k := NewKeeper(Limits{}, 1)
		for i := range order {
			steps[order[i]](k)
		}
		k.Flush()
		all := k.Kept()
		if len(all) != 1 || len(all[0].Spans) != 2 || !all[0].Tree().Complete() {
			t.Errorf("%s: %+v", order, all)
		}
		if want := overhead + all[0].Spans[0].size() + all[0].Spans[1].size(); k.bytes != want || len(k.traces) != 1 {
			t.Errorf("%s: %d bytes of %d traces, want %d of 1", order, k.bytes, len(k.traces), want)
		}
	}
}
