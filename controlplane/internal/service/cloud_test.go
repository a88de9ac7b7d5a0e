package service

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stormglass/stormglass/controlplane/control"
)

// cloudAt returns a cloud with its state in a file, and the function call, which sends the cloud a request.
func cloudAt(t *testing.T, f cloudFlags) (s *server, call func(method, path string, in, out any) int) {
	t.Helper()
	s = newServer("test", flags{cloud: f})
	if _, err := serveCloud(s); err != nil {
		t.Fatal(err)
	}
	return s, func(method, path string, in, out any) int {
		t.Helper()
		body, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		ask := verified(method, path, string(body))
		if method == http.MethodPost {
			ask.TLS.PeerCertificates[0].Subject.Organization = []string{"system:masters"}
		}
		answer := httptest.NewRecorder()
		s.mux.ServeHTTP(answer, ask)
		if out != nil && answer.Code == http.StatusOK {
			if err := json.Unmarshal(answer.Body.Bytes(), out); err != nil {
				t.Errorf("response to %s %s is not JSON: %s: %v", method, path, answer.Body, err)
			}
		}
		return answer.Code
	}
}

// A cloud keeps its objects when it is killed, even while it writes a line. Deleted objects stay deleted.
func TestCloudKeepsItsState(t *testing.T) {
	f := cloudFlags{state: filepath.Join(t.TempDir(), "cloud.jsonl")}
	_, call := cloudAt(t, f)
	launched := control.Instance{Name: "a", Zone: "zone-1", Address: "10.128.0.1"}
	if code := call("POST", InstancesPath, control.Instances{Launch: []control.Instance{launched, {Name: "b"}}}, nil); code != http.StatusNoContent {
		t.Fatalf("launch of instances = %d, want 204", code)
	}
	call("POST", InstancesPath, control.Instances{Terminate: []string{"b", "never there"}}, nil)
	var made LoadBalancer
	call("PUT", LoadBalancersPath+"/lb", LoadBalancer{Hosts: []string{"a"}}, &made)
	call("PUT", RoutesPath+"/a", Route{Instance: "a", CIDR: "10.64.0.0/24"}, nil)
	file, err := os.OpenFile(f.state, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := file.WriteString(`{"kind":"route","na`); err != nil {
		t.Fatal(err)
	}
	file.Close()

	for range 2 { // the second start uses the file that the first has repaired
		_, call = cloudAt(t, f)
		var instance control.Instance
		var balancer LoadBalancer
		var routes map[string]Route
		call("GET", InstancesPath+"/a", nil, &instance)
		call("GET", LoadBalancersPath+"/lb", nil, &balancer)
		call("GET", RoutesPath, nil, &routes)
		if instance != launched || balancer.Address != made.Address || len(balancer.Hosts) != 1 || len(routes) != 1 || routes["a"].CIDR != "10.64.0.0/24" {
			t.Errorf("instance %+v, load balancer %+v and routes %v differ from those before the kill", instance, balancer, routes)
		}
		if code := call("GET", InstancesPath+"/b", nil, nil); code != http.StatusNotFound {
			t.Errorf("get of a terminated instance = %d, want 404", code)
		}
		if code := call("PUT", RoutesPath+"/b", Route{Instance: "b"}, nil); code != http.StatusOK {
			t.Errorf("creation of a route after a start = %d, want 200", code)
		}
		call("DELETE", RoutesPath+"/b", nil, nil)
	}
}

// Each load balancer gets its own address when its creation time has passed. A quota counts the existing load
// balancers.
func TestLoadBalancersOfACloud(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, call := cloudAt(t, cloudFlags{state: filepath.Join(t.TempDir(), "cloud"), balancers: 2, balancerTime: 10 * time.Second})
		var one, two LoadBalancer
		call("PUT", LoadBalancersPath+"/one", LoadBalancer{}, &one)
		call("PUT", LoadBalancersPath+"/two", LoadBalancer{}, &two)
		if one.Address != "" || two.Address != "" {
			t.Errorf("addresses before the creation time = %q and %q, want none", one.Address, two.Address)
		}
		if code := call("PUT", LoadBalancersPath+"/three", LoadBalancer{}, nil); code != http.StatusForbidden {
			t.Errorf("creation of a load balancer above the quota = %d, want 403", code)
		}
		time.Sleep(10 * time.Second)
		call("GET", LoadBalancersPath+"/one", nil, &one)
		call("PUT", LoadBalancersPath+"/two", LoadBalancer{Hosts: []string{"a"}}, &two)
		if one.Address != "198.18.0.1" || two.Address != "198.18.0.2" || len(two.Hosts) != 1 {
			t.Errorf("load balancers = %+v and %+v, want 198.18.0.1 and 198.18.0.2", one, two)
		}
		call("DELETE", LoadBalancersPath+"/one", nil, nil)
		if code := call("PUT", LoadBalancersPath+"/three", LoadBalancer{}, nil); code != http.StatusOK {
			t.Errorf("creation after a deletion = %d, want 200", code)
		}
	})
}

// A service refuses requests above its limit immediately, with the time to wait, until the fault ends.
func TestServiceThrottles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, _ := cloudAt(t, cloudFlags{state: filepath.Join(t.TempDir(), "cloud")})
		count := func() (answered int, wait string) {
			for range 20 {
				answer := httptest.NewRecorder()
				s.mux.ServeHTTP(answer, verified("GET", RoutesPath, ""))
				if answer.Code == http.StatusOK {
					answered++
				} else if wait = answer.Header().Get("Retry-After"); answer.Code != http.StatusTooManyRequests {
					t.Errorf("response to a throttled request = %d, want 429", answer.Code)
				}
			}
			return answered, wait
		}
		s.conduct.set(Behaviour{Throttle: 0.5, Delay: time.Second})
		if n, wait := count(); n != 1 || wait != "1" { // the request used the first of two seconds
			t.Errorf("accepted %d requests, then wait %q s", n, wait)
		}
		s.conduct.set(Behaviour{})
		if n, _ := count(); n != 20 {
			t.Errorf("accepted %d requests after the fault, want 20", n)
		}
	})
}

// The behaviour of a fault is combined with the service's own behaviour.
func TestBehaviourOfAFaultOverOwn(t *testing.T) {
	own := Behaviour{Delay: 50 * time.Millisecond, Jitter: 10 * time.Millisecond, Throttle: 20}
	if got := (Behaviour{}).over(own); got != own {
		t.Errorf("over without a fault = %+v, want %v", got, own)
	}
	want := Behaviour{Delay: 1050 * time.Millisecond, Jitter: 10 * time.Millisecond, Throttle: 5, Fails: true}
	if got := (Behaviour{Delay: time.Second, Throttle: 5, Fails: true}).over(own); got != want {
		t.Errorf("over with a fault = %+v, want %v", got, want)
	}
}
