package importer

// asks describes a job according to the configuration.
func (b *burner) asks(j *burnJob, p *part) {
	verb := map[string]string{"delete": "delete ", "patch": "patch ", "read": "get "}[j.kind]
	for _, o := range j.objects {
		switch resource := resourceOf(o.apiVersion, o.kind); {
		case j.kind == "kubevirt":
			p.actions = append(p.actions, o.text("kubeVirtOp", ""))
		case verb != "":
			p.actions = append(p.actions, verb+resource)
			if j.kind == "delete" && j.waitForDeletion {
				p.waits = append(p.waits, "no "+resource)
			}
			if j.kind == "patch" && o.wait && !b.wait && readyTest(o.kind) != "" {
				p.waits = append(p.waits, resource)
			}
		case o.replicas > 0:
			b.addCreated(j, o, p)
		}
	}
	if j.kind == "create" && len(p.objects) > 0 || j.kind == "read" {
		p.rates = []string{rateText(j.qps, 0, "")}
		if j.delay > 0 && j.iterations > 1 {
			p.rates[0] += " with pauses of " + j.delay.String()
		}
	}
	for _, w := range j.list("watchers") {
		p.actions = append(p.actions, "watch "+resourceOf(w.text("apiVersion", "v1"), w.text("kind", "")))
	}
}

// addCreated adds to p what a create job asks of one entry of its objects.
func (b *burner) addCreated(j *burnJob, o *burnObject, p *part) {
	found := false
	removes := j.flag("gc", false) || j.has("incrementalLoad") || o.sub("group").flag("gc", false)
	for _, m := range b.made {
		if m.object != o {
			continue
		}
		found = true
		p.objects[m.kind] += m.count
		p.namespaces = max(p.namespaces, 1)
		if namespaced(m.kind) && j.inNamespaces {
			p.namespaces = max(p.namespaces, (j.iterations+j.perNamespace-1)/j.perNamespace)
		}
		resource := m.resource()
		churned := j.churn && (j.sub("churnConfig").text("mode", "") != "objects" || o.flag("churn", true))
		if removes || churned {
			p.actions = append(p.actions, "delete "+resource)
		}
		if removes && j.waitForDeletion || churned {
			p.waits = append(p.waits, "no "+resource)
		}
		w := o.sub("waitOptions")
		kind, apiVersion := w.text("kind", m.kind), m.apiVersion
		if w.has("kind") {
			apiVersion = w.text("apiVersion", apiVersion)
		}
		if o.wait && (j.wait || j.podWait || b.wait) && (readyTest(kind) != "" || w.has("customStatusPaths")) {
			to := p
			if b.wait {
				to = b.all
			}
			to.waits = append(to.waits, resourceOf(apiVersion, kind))
		}
	}
	if !found {
		p.objects["of "+o.template] += o.replicas * o.times(j.iterations)
	}
}
