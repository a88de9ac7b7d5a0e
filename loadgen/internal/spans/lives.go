package spans

import (
	"cmp"
	"encoding/binary"
	"hash/fnv"
	"slices"
	"strings"

	"github.com/stormglass/stormglass/loadgen/result"
)

const (
	mostWorkloads = 5  // workloads whose pods are followed
	mostPods      = 2  // pods of each workload that are followed
	mostWrites    = 24 // latest writes of an object that are kept
)

// lives follows the writes that make pods: of a uniform sample of workloads, the writes of the Deployment, its ReplicaSets
// and EndpointSlices, and those of a sample of its pods.
type lives struct {
	seed      uint64
	workloads sample[*workloadWrites] // by NAMESPACE/NAME
}

type workloadWrites struct {
	deployments, replicaSets, slices []*held
	pods                             sample[[]*held] // by NAMESPACE/NAME
}

// add adds a trace if it wrote an object that is followed. It calls release for each trace that is no longer needed.
func (l *lives) add(h *held, release func(*held)) {
	kind, namespace, name := written(h.spans)
	cuts := map[string]int{"deployments": 0, "replicasets": 1, "endpointslices": 1, "pods": 2}
	cut, ok := cuts[kind]
	if !ok || namespace == "kube-system" || h.request.Failed() {
		return
	}
	owner := name
	for range cut { // Kubernetes appends a hash or random letters at each step from a Deployment to its pods
		if i := strings.LastIndexByte(owner, '-'); i > 0 {
			owner = owner[:i]
		}
	}
	w := l.workloads.get(l.seed, namespace+"/"+owner, mostWorkloads, func(w *workloadWrites) { w.release(release) })
	if w == nil {
		return
	}
	if *w == nil {
		*w = &workloadWrites{}
	}
	to := map[string]*[]*held{"deployments": &(*w).deployments, "replicasets": &(*w).replicaSets, "endpointslices": &(*w).slices}[kind]
	if kind == "pods" {
		to = (*w).pods.get(l.seed, namespace+"/"+name, mostPods, func(writes []*held) { releaseAll(writes, release) })
	}
	if to == nil {
		return
	}
	h.uses++
	if *to = append(*to, h); len(*to) > mostWrites {
		release((*to)[0])
		*to = slices.Delete(*to, 0, 1)
	}
}

// written returns the object that a trace wrote to etcd, from the key of the API server's storage span.
func written(all []Span) (kind, namespace, name string) {
	for i := range all {
		s := &all[i]
		if s.Name != "Create etcd3" && s.Name != "GuaranteedUpdate etcd3" && s.Name != "Delete etcd3" {
			continue
		}
		if key := strings.Split(s.Attribute("key"), "/"); len(key) == 4 {
			return key[1], key[2], key[3]
		}
	}
	return "", "", ""
}

func releaseAll(writes []*held, release func(*held)) {
	for _, h := range writes {
		release(h)
	}
}

func (w *workloadWrites) release(release func(*held)) {
	for _, h := range w.all() {
		release(h)
	}
}

func (w *workloadWrites) all() []*held {
	all := slices.Concat(w.deployments, w.replicaSets, w.slices)
	for _, p := range w.pods.all {
		all = append(all, p.value...)
	}
	return all
}

// all returns the traces of all followed objects.
func (l *lives) all() (all []*held) {
	for _, w := range l.workloads.all {
		all = append(all, w.value.all()...)
	}
	return all
}

// rows returns the lives of the followed pods whose creation was traced, by workload and pod.
func (l *lives) rows() (rows []result.PodLife) {
	for _, w := range l.workloads.all {
		for _, p := range w.value.pods.all {
			if life, ok := w.value.life(p.name, p.value); ok {
				rows = append(rows, life)
			}
		}
	}
	slices.SortFunc(rows, func(a, b result.PodLife) int { return cmp.Compare(a.Pod, b.Pod) })
	return rows
}

// life returns the life of a pod: the last writes of its Deployment and ReplicaSet before it was created, its own writes
// until it is deleted, and the first write of an EndpointSlice after its last status.
func (w *workloadWrites) life(name string, writes []*held) (life result.PodLife, ok bool) {
	writes = byDue(writes)
	created := slices.IndexFunc(writes, func(h *held) bool { return h.request.Verb == "POST" && h.request.Resource == "pods" })
	if created < 0 {
		return life, false
	}
	writes = writes[created:]
	if deleted := slices.IndexFunc(writes, func(h *held) bool { return h.request.Verb == "DELETE" }); deleted > 0 {
		writes = writes[:deleted]
	}
	var all []*held
	for _, owners := range [][]*held{w.deployments, w.replicaSets} {
		before := slices.DeleteFunc(byDue(owners), func(h *held) bool {
			return h.request.Due > writes[0].request.Due || strings.HasSuffix(h.request.Resource, "/status")
		})
		if n := len(before); n > 0 {
			all = append(all, before[n-1])
		}
	}
	all = append(all, writes...)
	last := writes[len(writes)-1].request.Due
	if after := slices.DeleteFunc(byDue(w.slices), func(h *held) bool { return h.request.Due < last }); len(after) > 0 {
		all = append(all, after[0])
	}
	all = byDue(all)
	start, end := all[0].request.Due, int64(0)
	life = result.PodLife{Pod: name, Start: start}
	for _, h := range all {
		r := h.request
		end = max(end, r.Last)
		client := r.Client
		if client == "" {
			client = "load " + r.Load
		}
		life.Writes = append(life.Writes, result.PodWrite{What: r.Verb + " " + r.Resource, Client: client, Start: seconds(r.Due - start), Seconds: seconds(r.Duration()), Trace: r.Trace.String()})
	}
	life.Seconds = seconds(end - start)
	return life, true
}

func byDue(writes []*held) []*held {
	return slices.SortedStableFunc(slices.Values(writes), func(a, b *held) int { return cmp.Compare(a.request.Due, b.request.Due) })
}

// sample is a uniform sample of names: those whose hashes are lowest. A name is in the sample from its first occurrence
// or never.
type sample[T any] struct{ all []sampled[T] }

type sampled[T any] struct {
	hash  uint64
	name  string
	value T
}

// get returns the value of a name, or nil if the name is not in a sample of at most `most` names. It calls drop for a
// value that leaves the sample.
func (s *sample[T]) get(seed uint64, name string, most int, drop func(T)) *T {
	f := fnv.New64a()
	_, _ = f.Write(binary.LittleEndian.AppendUint64(nil, seed))
	_, _ = f.Write([]byte(name))
	hash := f.Sum64()
	i, found := slices.BinarySearchFunc(s.all, hash, func(x sampled[T], hash uint64) int { return cmp.Compare(x.hash, hash) })
	switch {
	case found && s.all[i].name == name:
		return &s.all[i].value
	case found || i >= most:
		return nil
	}
	s.all = slices.Insert(s.all, i, sampled[T]{hash: hash, name: name})
	if len(s.all) > most {
		drop(s.all[most].value)
		s.all = s.all[:most]
	}
	return &s.all[i].value
}
