package controlplane

// ObservedAt says in cluster.json, and to whoever asks for the status, where the
// plane can be observed. Call it once the plane is ready.
func (p *Plane) ObservedAt(url string) error {
	p.mu.Lock()
	cluster := *p.cluster
	cluster.Observe = url
	p.cluster = &cluster // those who have the old one may still read it
	p.mu.Unlock()
	return p.publish()
}
