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
	maxWorkloads = 5  // maximum number of workloads whose pods are followed
	maxPods      = 2  // maximum number of followed pods of each workload
	maxWrites    = 24 // maximum number of kept writes of a workload's owners (the latest) or of a pod (the first)
)

// lives follows the writes that create pods and make them ready. It draws a uniform sample of workloads, and of the pods
// of each. It follows the writes of these pods, and of their Deployments, ReplicaSets and EndpointSlices. It expects
// traces nearly in the order of their requests.
type lives struct {
	seed      uint64
	workloads sample[*workloadWrites] // followed workloads, by NAMESPACE/NAME
}

type workloadWrites struct {
	owners []ownerWrite // latest writes of the Deployment and ReplicaSets, except of /status
	pods   sample[*podWrites]
}

// ownerWrite is a write of a Deployment or ReplicaSet.
type ownerWrite struct {
	kind, name string
	*held
}

// podWrites holds the writes in the life of a pod.
type podWrites struct {
	before []*held // the last writes of the Deployment and the ReplicaSet before the pod was created
	own    []*held // writes of the pod, from its creation to its deletion
	slice  *held   // first write of an EndpointSlice after the last write in own; nil: none yet
	ended  bool    // whether the pod was deleted
}

// add adds a trace if its request wrote an object that l follows. It calls release for each trace that l no longer needs.
func (l *lives) add(h *held, release func(*held)) {
	kind, namespace, name := written(h.spans)
	cuts := map[string]int{"deployments": 0, "replicasets": 1, "endpointslices": 1, "pods": 2}
	cut, ok := cuts[kind]
	if !ok || namespace == "kube-system" || h.request.Failed() {
		return
	}
	owner := name
	for range cut { // Kubernetes appends a hash or random letters at each step from a Deployment to its pods
		owner = owner[:max(strings.LastIndexByte(owner, '-'), 0)]
	}
	w := get(&l.workloads, l.seed, namespace+"/"+owner, maxWorkloads, func(w *workloadWrites) { releaseAll(w.all(), release) })
	switch {
	case w == nil:
	case kind == "pods":
		if p := get(&w.pods, l.seed, namespace+"/"+name, maxPods, func(p *podWrites) { releaseAll(p.all(), release) }); p != nil {
			p.add(h, w.owners, name, release)
		}
	case kind == "endpointslices":
		for _, p := range w.pods.all {
			p.value.published(h)
		}
	case !strings.HasSuffix(h.request.Resource, "/status"):
		h.uses++
		if w.owners = append(w.owners, ownerWrite{kind, name, h}); len(w.owners) > maxWrites {
			release(w.owners[0].held)
			w.owners = slices.Delete(w.owners, 0, 1)
		}
	}
}

// add adds a write of the pod. The first must be its creation. Writes after the deletion are not part of its life.
func (p *podWrites) add(h *held, owners []ownerWrite, name string, release func(*held)) {
	n := len(p.own)
	switch {
	case h.request.Verb == "DELETE":
		p.ended = true
		return
	case p.ended, n >= maxWrites, n == 0 && (h.request.Verb != "POST" || h.request.Resource != "pods"):
		return
	case n == 0:
		for _, kind := range []string{"deployments", "replicasets"} {
			for _, o := range slices.Backward(owners) {
				if o.kind == kind && o.request.Due <= h.request.Due && (kind == "deployments" || strings.HasPrefix(name, o.name+"-")) {
					o.uses++
					p.before = append(p.before, o.held)
					break
				}
			}
		}
	}
	h.uses++
	p.own = append(p.own, h)
	if p.slice != nil && p.slice.request.Due < h.request.Due {
		release(p.slice)
		p.slice = nil
	}
}

// published adds a write of an EndpointSlice, unless the pod already has one since the last write in p.own.
func (p *podWrites) published(h *held) {
	if n := len(p.own); n > 0 && !p.ended && p.slice == nil && p.own[n-1].request.Due <= h.request.Due {
		h.uses++
		p.slice = h
	}
}

func (p *podWrites) all() []*held {
	all := slices.Concat(p.before, p.own)
	if p.slice != nil {
		all = append(all, p.slice)
	}
	return all
}

func (w *workloadWrites) all() (all []*held) {
	for _, o := range w.owners {
		all = append(all, o.held)
	}
	for _, p := range w.pods.all {
		all = append(all, p.value.all()...)
	}
	return all
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

// kept returns the traces of the writes that rows returns.
func (l *lives) kept() (all []*held) {
	for _, w := range l.workloads.all {
		for _, p := range w.value.pods.all {
			all = append(all, p.value.all()...)
		}
	}
	return all
}

// rows returns the lives of the followed pods, the longest first.
func (l *lives) rows() (rows []result.PodLife) {
	for _, w := range l.workloads.all {
		for _, p := range w.value.pods.all {
			if len(p.value.own) > 0 {
				rows = append(rows, p.value.life(p.name))
			}
		}
	}
	slices.SortFunc(rows, func(a, b result.PodLife) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Pod, b.Pod))
	})
	return rows
}

func (p *podWrites) life(name string) result.PodLife {
	all := p.all()
	slices.SortStableFunc(all, func(a, b *held) int { return cmp.Compare(a.request.Due, b.request.Due) })
	life := result.PodLife{Pod: name, Start: all[0].request.Due}
	for _, h := range all {
		r := h.request
		start := seconds(r.Due - life.Start)
		life.Seconds = max(life.Seconds, start+seconds(r.Duration()))
		life.Writes = append(life.Writes, result.PodWrite{
			What: r.Verb + " " + r.Resource, Client: cmp.Or(r.Client, r.Load), Start: start, Seconds: seconds(r.Duration()), Trace: r.Trace.String(),
		})
	}
	return life
}

// sample is a uniform sample of names: the names with the lowest hashes. A name enters the sample at its first occurrence,
// or never.
type sample[T any] struct{ all []sampled[T] }

type sampled[T any] struct {
	hash  uint64
	name  string
	value T
}

// get returns the value of a name, or nil if the name is not in a sample of at most `most` names. It calls drop for a
// value that leaves the sample.
func get[T any](s *sample[*T], seed uint64, name string, most int, drop func(*T)) *T {
	f := fnv.New64a()
	_, _ = f.Write(binary.LittleEndian.AppendUint64(nil, seed))
	_, _ = f.Write([]byte(name))
	hash := f.Sum64()
	i, found := slices.BinarySearchFunc(s.all, hash, func(x sampled[*T], hash uint64) int { return cmp.Compare(x.hash, hash) })
	switch {
	case found && s.all[i].name == name:
		return s.all[i].value
	case found || i >= most:
		return nil
	}
	value := new(T)
	s.all = slices.Insert(s.all, i, sampled[*T]{hash, name, value})
	if len(s.all) > most {
		drop(s.all[most].value)
		s.all = s.all[:most]
	}
	return value
}
