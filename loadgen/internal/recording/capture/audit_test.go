package capture

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stormglass/stormglass/internal/exitcode"
	"github.com/stormglass/stormglass/loadgen/internal/auditlog/auditlogtest"
	"github.com/stormglass/stormglass/loadgen/internal/recording"
)

// logged is a short form of an event. Its times are seconds after 10:00.
type logged struct {
	id, stage, verb, uri, user, uid, as, agent string
	resource, ns, name, group, sub, body       string
	at, stageAt                                float64
	code                                       int
}

// clockTime returns 10:00 plus some seconds.
func clockTime(seconds float64) time.Time {
	return time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
}

func (l logged) String() string {
	const form = "2006-01-02T15:04:05.000000Z"
	extra := ""
	if l.as != "" {
		extra += fmt.Sprintf(`,"impersonatedUser":{"username":%q}`, l.as)
	}
	if l.resource != "" {
		extra += fmt.Sprintf(`,"objectRef":{"resource":%q,"namespace":%q,"name":%q,"apiGroup":%q,"apiVersion":"v1","subresource":%q}`, l.resource, l.ns, l.name, l.group, l.sub)
	}
	if l.body != "" {
		extra += `,"requestObject":` + l.body
	}
	return fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":%q,"stage":%q,"requestURI":%q,"verb":%q,"user":{"username":%q,"uid":%q},"userAgent":%q%s,"responseStatus":{"code":%d},"requestReceivedTimestamp":%q,"stageTimestamp":%q}`,
		l.id, cmp.Or(l.stage, "ResponseComplete"), cmp.Or(l.uri, "/x"), cmp.Or(l.verb, "get"), cmp.Or(l.user, "jane"), l.uid, l.agent, extra, cmp.Or(l.code, 200),
		clockTime(l.at).Format(form), clockTime(cmp.Or(l.stageAt, l.at+0.001)).Format(form))
}

func write(t *testing.T, events ...logged) string {
	t.Helper()
	var text strings.Builder
	for _, e := range events {
		fmt.Fprintln(&text, e)
	}
	return writeText(t, text.String())
}

func writeText(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.log")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// recordAudit records a recording and reads it back.
func recordAudit(t *testing.T, o AuditOptions) (*Result, []recording.Request) {
	t.Helper()
	o.Out = filepath.Join(t.TempDir(), "storm.recording.gz")
	r, err := Audit(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return r, readBack(t, r)
}

func readBack(t *testing.T, r *Result) []recording.Request {
	t.Helper()
	from, err := recording.Open(r.Out)
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	if got := from.Header(); !reflect.DeepEqual(got, r.Header) {
		t.Errorf("header in the file\n%+v, reported\n%+v", got, r.Header)
	}
	var all []recording.Request
	for {
		var request recording.Request
		err := from.Next(&request)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, request)
	}
}

// refused checks that a recording fails with a usage error.
func refused(t *testing.T, o AuditOptions, want string) {
	t.Helper()
	o.Out = filepath.Join(t.TempDir(), "storm.recording")
	_, err := Audit(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), want) || exitcode.Of(err) != exitcode.Usage || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v, want one line of usage with %q", err, want)
	}
	if left, _ := os.ReadDir(filepath.Dir(o.Out)); len(left) > 0 {
		t.Errorf("left %v", left)
	}
}

func noted(r *Result, part string) bool {
	return slices.ContainsFunc(r.Header.Notes, func(n string) bool { return strings.Contains(n, part) })
}

func TestRequestHasWhatTheEventSays(t *testing.T) {
	r, got := recordAudit(t, AuditOptions{KeepNames: true, Logs: []string{write(t,
		logged{id: "1", verb: "list", uri: "/api/v1/namespaces/shop/pods?labelSelector=app%3Dweb%2Ctier+in+%28a%2Cb%29&fieldSelector=spec.nodeName%3Dn1&limit=500&continue=abc&resourceVersion=0", resource: "pods", ns: "shop", agent: "kubectl/v1"},
		logged{id: "2", at: 0.25, stageAt: 0.75, verb: "patch", uri: "/x?fieldManager=a&dryRun=All", resource: "deployments", group: "apps", ns: "shop", name: "web", sub: "scale", body: `[{"op":"remove"}]`, code: 409, as: "root"},
		logged{id: "3", at: 0.5, verb: "patch", uri: "/x?fieldManager=a&force=true", resource: "deployments", group: "apps", ns: "shop", name: "web"},
		logged{id: "4", at: 0.6, verb: "patch", uri: "/x?fieldManager=a", resource: "deployments", group: "apps", ns: "shop", name: "web", body: `{"kind":"Deployment","apiVersion":"apps/v1"}`},
		logged{id: "5", at: 0.7, verb: "patch", resource: "deployments", group: "apps", ns: "shop", name: "web", body: `{"spec":{}}`},
	)}})
	apply := recording.Request{At: 500e3, Took: 1000, Verb: "patch", Group: "apps", Version: "v1", Resource: "deployments", Namespace: "shop", Name: "web", PatchType: "application/apply-patch+yaml", Code: 200}
	typed, merge := apply, apply
	typed.At, typed.Size = 600e3, 44
	merge.At, merge.Size, merge.PatchType = 700e3, 11, ""
	want := []recording.Request{
		{Actor: 2, Took: 1000, Verb: "list", Version: "v1", Resource: "pods", Namespace: "shop", LabelSelector: "app=web,tier in (a,b)", FieldSelector: "spec.nodeName=n1", Limit: 500, Paged: true, ResourceVersion: "0", Code: 200},
		{Actor: 1, At: 250e3, Took: 500e3, Verb: "patch", Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale", Namespace: "shop", Name: "web", PatchType: "application/json-patch+json", Size: 17, DryRun: true, Code: 409},
		apply, typed, merge,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("requests\n%+v, want\n%+v", got, want)
	}
	actors := []recording.Actor{{Name: "jane"}, {Name: "jane", As: "root"}, {Name: "jane", UserAgent: "kubectl/v1"}}
	if !reflect.DeepEqual(r.Header.Actors, actors) || r.Header.Length != 750e3 || !r.Header.Start.Equal(clockTime(0)) || r.Header.Hashed {
		t.Errorf("header %+v", r.Header)
	}
}

func TestStagesOfARequestCountOnce(t *testing.T) {
	create := logged{id: "a", verb: "create", resource: "pods", ns: "shop", at: 1, stageAt: 1}
	received, ended := create, create
	received.stage, received.code = "RequestReceived", 0
	ended.stageAt, ended.name, ended.code = 1.5, "web-1", 201
	log := write(t, received, ended)
	r, got := recordAudit(t, AuditOptions{KeepNames: true, Logs: []string{log, log}})
	want := []recording.Request{{Took: 500e3, Verb: "create", Version: "v1", Resource: "pods", Namespace: "shop", Name: "web-1", Code: 201}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("requests\n%+v, want\n%+v", got, want)
	}
	if !noted(r, "more than once (each counts once): 2") {
		t.Errorf("notes %q", r.Header.Notes)
	}
}

func TestWatchesArePairedByAuditID(t *testing.T) {
	watch := func(id string, at float64) logged {
		return logged{id: id, verb: "watch", uri: "/api/v1/pods?watch=true&sendInitialEvents=true&resourceVersion=7", resource: "pods", at: at, stage: "ResponseStarted"}
	}
	ended := watch("whole", 2)
	ended.stage, ended.stageAt = "ResponseComplete", 5
	before := watch("before", -1800)
	before.stage, before.stageAt = "ResponseComplete", 3
	r, got := recordAudit(t, AuditOptions{KeepNames: true, Logs: []string{write(t,
		logged{id: "first", resource: "pods", at: 1}, watch("whole", 2), before, watch("open", 4), ended, logged{id: "last", resource: "pods", at: 6, stageAt: 7},
	)}})
	var watches []recording.Request
	for _, request := range got {
		if request.Verb == "watch" {
			watches = append(watches, request)
		}
	}
	shape := recording.Request{Verb: "watch", Version: "v1", Resource: "pods", ResourceVersion: "7", InitialEvents: true, Code: 200}
	carried, whole, open := shape, shape, shape
	carried.At, carried.Took = 0, 2e6 // open when the log began at 10:00:01
	whole.At, whole.Took = 1e6, 3e6
	open.At, open.Took = 3e6, 3e6 // until the end of the log at 10:00:07
	if want := []recording.Request{carried, whole, open}; !reflect.DeepEqual(watches, want) {
		t.Errorf("watches\n%+v, want\n%+v", watches, want)
	}
	if r.Header.Length != 6e6 || !noted(r, "already open when the recording begins (they start with the recording): 1") || !noted(r, "still open when the recording ends (they end with the recording): 1") {
		t.Errorf("length %d, notes %q", r.Header.Length, r.Header.Notes)
	}
}

func TestLogsOfSeveralServersAreMergedByTime(t *testing.T) {
	account := func(id string, at float64) logged {
		return logged{id: id, at: at, user: "system:serviceaccount:kube-system:coredns", uid: "u1", resource: "services", name: id}
	}
	r, got := recordAudit(t, AuditOptions{KeepNames: true, Logs: []string{
		write(t, account("a", 0), account("c", 2)), write(t, account("b", 1), account("d", 3)),
	}})
	var order []string
	for _, request := range got {
		order = append(order, request.Name)
	}
	if want := []string{"a", "b", "c", "d"}; !slices.Equal(order, want) || len(r.Header.Actors) != 1 {
		t.Errorf("order %q of %d actors, want %q of one", order, len(r.Header.Actors), want)
	}
}

func TestWindowCutsRequestsAndWatches(t *testing.T) {
	watch := logged{id: "w", verb: "watch", resource: "pods", at: 1, stageAt: 20}
	_, got := recordAudit(t, AuditOptions{KeepNames: true, From: clockTime(5), To: clockTime(10), Logs: []string{write(t,
		logged{id: "1", resource: "a", at: 4}, logged{id: "2", resource: "b", at: 6}, logged{id: "3", resource: "c", at: 10}, watch,
	)}})
	want := []recording.Request{
		{At: 0, Took: 5e6, Verb: "watch", Version: "v1", Resource: "pods", Code: 200},
		{At: 1e6, Took: 1000, Verb: "get", Version: "v1", Resource: "b", Code: 200},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("requests\n%+v, want\n%+v", got, want)
	}
}

func TestOnlyClientsRequestsAreKept(t *testing.T) {
	var log bytes.Buffer
	truth, err := auditlogtest.Write(&log, auditlogtest.Options{Lines: 20000, Seed: 3})
	if err != nil {
		t.Fatal(err)
	}
	r, _ := recordAudit(t, AuditOptions{Logs: []string{writeText(t, log.String())}})
	early := r.Header.Dropped[beforeStart]
	for _, s := range r.Summary.ByVerb() {
		if want := truth.Clients[s.Of]; s.Requests > want || s.Requests < want-early {
			t.Errorf("%d requests to %s, want %d less at most %d before the start", s.Requests, s.Of, want, early)
		}
	}
	system := int64(0)
	for _, reason := range []string{fromKubelets, fromController, fromScheduler, fromAPIServer} {
		if r.Header.Dropped[reason] == 0 {
			t.Errorf("no request was left out of %s", reason)
		}
		system += r.Header.Dropped[reason]
	}
	if system != truth.System || r.Header.Dropped[forNoResource] != truth.NoResource {
		t.Errorf("left out %v, want %d of the system and %d of no resource", r.Header.Dropped, truth.System, truth.NoResource)
	}
	if r.Lines != truth.Lines || early > 20 {
		t.Errorf("%d lines, %d requests before the start", r.Lines, early)
	}
	if all, _ := recordAudit(t, AuditOptions{Logs: []string{writeText(t, log.String())}, KeepSystem: true}); all.Summary.Requests < truth.System {
		t.Errorf("--keep-system kept %d", all.Summary.Requests)
	}
}

func TestAddOnsAreNoController(t *testing.T) {
	for user, want := range map[string]string{
		"system:serviceaccount:kube-system:deployment-controller":   fromController,
		"system:serviceaccount:kube-system:ebs-csi-controller":      "",
		"system:serviceaccount:kube-system:coredns":                 "",
		"system:serviceaccount:shop:deployment-controller":          "",
		"system:node:worker-1":                                      fromKubelets,
		"system:bootstrap:abcdef":                                   fromBootstrap,
		"system:bootstrap:sgload":                                   "",
		"system:kube-proxy":                                         fromProxies,
		"kubernetes-admin":                                          "",
		"stormglass-loadgen":                                        "",
		"system:serviceaccount:x:kube-system:deployment-controller": "",
	} {
		if got := systemSource(user, "", "x"); got != want {
			t.Errorf("%s: %q, want %q", user, got, want)
		}
	}
	if got := systemSource("system:serviceaccount:kube-system:new-controller", "", "kube-controller-manager/v1.40.0 (linux/amd64)"); got != fromController {
		t.Errorf("a controller by its user agent: %q", got)
	}
}

func TestStormglassIsRecognizedByItsUserAgent(t *testing.T) {
	const own = "loadgen/v0.0.0 (linux/amd64) kubernetes/$Format"
	r, got := recordAudit(t, AuditOptions{KeepNames: true, Logs: []string{write(t,
		logged{id: "1", user: "stormglass-admin", agent: "kubectl/v1.37.1 (linux/amd64) kubernetes/unknown", resource: "pods"},
		logged{id: "2", user: "stormglass-admin", agent: "helm/v4.3.1", resource: "pods"},
		logged{id: "3", user: "stormglass-admin", agent: "loadgen/v2 (my own program)", resource: "pods"},
		logged{id: "4", user: "stormglass-admin", agent: own, resource: "pods"},
		logged{id: "5", user: "stormglass-admin", agent: "controlplane/v1.37.1 (linux/amd64) kubernetes/unknown", resource: "pods"},
		logged{id: "6", user: "kubernetes-admin", agent: own, resource: "pods"},
		logged{id: "7", user: "stormglass-loadgen", agent: "stormglass-recorder", resource: "pods"},
		logged{id: "8", user: "stormglass-loadgen", agent: "stormglass-loadgen", resource: "pods"},
		logged{id: "9", user: "stormglass-admin", as: "stormglass:tenant:shop-0:jane", agent: own, resource: "pods"},
	)}})
	var agents []string
	for _, a := range r.Header.Actors {
		agents = append(agents, a.UserAgent)
	}
	slices.Sort(agents)
	want := []string{"helm/v4.3.1", "kubectl/v1.37.1 (linux/amd64) kubernetes/unknown", own, "loadgen/v2 (my own program)", "stormglass-loadgen"}
	if len(got) != 5 || !slices.Equal(agents, want) || r.Header.Dropped[fromStormglass] != 4 {
		t.Errorf("kept %q, left out %v, want %q and 4", agents, r.Header.Dropped, want)
	}
}

func TestEventsWithOneTimeArePaired(t *testing.T) {
	create := logged{id: "a", verb: "create", resource: "pods", ns: "shop", at: 1, stageAt: 1}
	received, ended := create, create
	received.stage, received.code = "RequestReceived", 0
	ended.stageAt, ended.name, ended.code = 1.5, "web-1", 201
	text := received.String() + "\n" + ended.String() + "\n" + logged{id: "b", resource: "pods", at: 3}.String() + "\n"
	for field, took := range map[string]recording.Micros{"requestReceivedTimestamp": 500e3, "stageTimestamp": 0} {
		log := writeText(t, strings.ReplaceAll(text, field, "other"))
		r, got := recordAudit(t, AuditOptions{KeepNames: true, Logs: []string{log, log}})
		if len(got) != 2 || got[0].At != 0 || got[0].Took != took || got[0].Code != 201 || got[0].Name != "web-1" || got[1].Took != 0 {
			t.Errorf("without %s: requests %+v", field, got)
		}
		if !noted(r, "6 events lack requestReceivedTimestamp or stageTimestamp, so loadgen uses the other time for both") || !noted(r, "more than once (each counts once): 3") {
			t.Errorf("without %s: notes %q", field, r.Header.Notes)
		}
	}
}

func TestObjectRefIsOptional(t *testing.T) {
	_, got := recordAudit(t, AuditOptions{KeepNames: true, Logs: []string{write(t, logged{id: "1", uri: "/apis/apps/v1/namespaces/shop/deployments/web/scale?timeout=1s"})}})
	want := []recording.Request{{Took: 1000, Verb: "get", Group: "apps", Version: "v1", Resource: "deployments", Subresource: "scale", Namespace: "shop", Name: "web", Code: 200}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("requests\n%+v, want\n%+v", got, want)
	}
}

func TestLogsOfTwoClustersAreRefused(t *testing.T) {
	of := func(cluster, lines int) string {
		var log bytes.Buffer
		if _, err := auditlogtest.Write(&log, auditlogtest.Options{Lines: lines, Seed: uint64(cluster), Cluster: cluster}); err != nil {
			t.Fatal(err)
		}
		return log.String()
	}
	one, other := of(1, 300), of(2, 300)
	refused(t, AuditOptions{Logs: []string{writeText(t, one), writeText(t, other)}}, "the logs come from two clusters, because system:serviceaccount:")
	recordAudit(t, AuditOptions{Logs: []string{writeText(t, one), writeText(t, of(1, 500))}})

	// One file with both clusters, for example from a log collector.
	at := func(seconds float64, uid string) logged {
		return logged{id: fmt.Sprint(seconds), at: seconds, resource: "pods", user: "system:serviceaccount:shop:operator", uid: uid}
	}
	refused(t, AuditOptions{Logs: []string{write(t, at(0, "u1"), at(1, "u2"), at(90, "u1"), at(91, "u2"))}}, "has both uid u1 and uid u2")
	// An account that was recreated belongs to one cluster.
	recordAudit(t, AuditOptions{Logs: []string{write(t, at(0, "u1"), at(80, "u1"), at(85, "u2"), at(200, "u2"))}})

	r, _ := recordAudit(t, AuditOptions{Logs: []string{write(t, logged{id: "1", resource: "pods"}), write(t, logged{id: "2", resource: "pods"})}})
	if !noted(r, "could not check that all logs come from the same cluster") {
		t.Errorf("notes %q", r.Header.Notes)
	}
}

func TestDamageIsCountedAndReported(t *testing.T) {
	good := logged{id: "1", resource: "pods"}.String()
	r, got := recordAudit(t, AuditOptions{Logs: []string{writeText(t, "starting\n"+good+"\n{}\n"+good[:50])}})
	if len(got) != 1 || r.Lines != 4 || r.Events != 1 {
		t.Errorf("%d requests, %d events of %d lines", len(got), r.Events, r.Lines)
	}
	want := []string{
		"audit.log: 1 of 4 lines end within an event (the first is line 4)",
		"audit.log: 1 of 4 lines are not JSON objects (the first is line 1)",
		"audit.log: 1 of 4 lines are not events of audit.k8s.io/v1 or v1beta1 (the first is line 3)",
	}
	if !slices.Equal(r.Header.Notes, want) {
		t.Errorf("notes %q, want %q", r.Header.Notes, want)
	}
}

func TestLogWithoutRequestsIsRefused(t *testing.T) {
	refused(t, AuditOptions{Logs: []string{writeText(t, "")}}, "no audit event was found: the logs are empty")
	refused(t, AuditOptions{Logs: []string{writeText(t, "hello\n")}}, "no audit event was found: audit.log: 1 of 1 lines are not JSON")
	refused(t, AuditOptions{Logs: []string{write(t, logged{id: "1", resource: "pods", user: "system:node:a"})}}, "nothing was recorded, because all requests were excluded: 1 of 1 request: kubelets 1 (100%)")
	refused(t, AuditOptions{Logs: []string{filepath.Join(t.TempDir(), "none.log")}}, "no such file")
	refused(t, AuditOptions{Logs: []string{write(t, logged{id: "1", resource: "pods"}, logged{id: "2", resource: "pods", at: 40 * 86400})}}, "a recording covers at most 31 days")
	refused(t, AuditOptions{Logs: []string{writeText(t, "\x1f\x8b\x08")}}, "the compressed data is truncated or damaged")
}

func TestPolicyWithoutReadsIsNoted(t *testing.T) {
	r, _ := recordAudit(t, AuditOptions{Logs: []string{write(t, logged{id: "1", resource: "pods", verb: "create"})}})
	if !noted(r, "the recording has no reads") {
		t.Errorf("notes %q", r.Header.Notes)
	}
}

func TestStandardInputIsALog(t *testing.T) {
	_, got := recordAudit(t, AuditOptions{Logs: []string{"-"}, Stdin: strings.NewReader(logged{id: "1", resource: "pods"}.String())})
	if len(got) != 1 {
		t.Errorf("%d requests", len(got))
	}
}

func TestEqualNamesStayEqual(t *testing.T) {
	log := write(t,
		logged{id: "1", user: "system:serviceaccount:shop:operator", resource: "pods", ns: "shop", name: "web", uri: "/x?labelSelector=app%3Dweb&fieldSelector=metadata.name%3Dweb%2Cstatus.phase%21%3DRunning"},
		logged{id: "2", user: "jane@example.com", resource: "secrets", ns: "shop", name: "token"},
		logged{id: "3", user: "jane@example.com", resource: "secrets", ns: "kube-system", name: "token", at: 1},
		logged{id: "4", user: "system:anonymous", resource: "customresourcedefinitions", group: "apiextensions.k8s.io", name: "orders.shop.example.com", at: 2},
	)
	r, got := recordAudit(t, AuditOptions{Logs: []string{log}})
	text := fmt.Sprintf("%+v %+v", r.Header.Actors, got)
	for _, name := range []string{"jane", "web", "token", "Namespace:shop", "serviceaccount:shop", "operator"} {
		if regexp.MustCompile(`(^|\W)` + name + `(\W|$)`).MatchString(text) { // a hash may contain the letters of a name
			t.Errorf("%q is in the recording: %s", name, text)
		}
	}
	pod, shop, kube, crd := got[0], got[1], got[2], got[3]
	if pod.Namespace != shop.Namespace || shop.Name != kube.Name || pod.Name == shop.Name || pod.Namespace == "" {
		t.Errorf("equal names are not equal: %+v", got)
	}
	if pod.LabelSelector != "app="+pod.Name || pod.FieldSelector != "metadata.name="+pod.Name+",status.phase!=Running" {
		t.Errorf("selectors %q, %q of pod %q", pod.LabelSelector, pod.FieldSelector, pod.Name)
	}
	if user := r.Header.Actors[pod.Actor].Name; !strings.HasPrefix(user, "system:serviceaccount:"+pod.Namespace+":") {
		t.Errorf("the service account %q does not belong to namespace %q", user, pod.Namespace)
	}
	if kube.Namespace != "kube-system" || crd.Name != "orders.shop.example.com" || r.Header.Actors[crd.Actor].Name != "system:anonymous" {
		t.Errorf("names that every cluster has are hashed: %+v", got)
	}
	if _, again := recordAudit(t, AuditOptions{Logs: []string{log}}); again[0].Name == pod.Name {
		t.Error("two recordings have the same key")
	}
}
