package node

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	clienttesting "k8s.io/client-go/testing"

	"github.com/stormglass/stormglass/loadgen/internal/apiclient"
)

// Each node sends the newest token of its account. A token is renewed at 80% of its life, and again after a refusal.
func TestAccountTokensAreRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		given := map[string]int{}
		refused := 0
		client.PrependReactor("create", "serviceaccounts", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if a.GetSubresource() != "token" {
				return false, nil, nil
			}
			name := a.(clienttesting.CreateActionImpl).Name
			if given[name] == 1 && refused == 0 {
				refused++
				return true, nil, fmt.Errorf("not now")
			}
			given[name]++
			return true, &authenticationv1.TokenRequest{Status: authenticationv1.TokenRequestStatus{
				Token: fmt.Sprintf("%s-%d", name, given[name]), ExpirationTimestamp: metav1.NewTime(time.Now().Add(time.Hour)),
			}}, nil
		})
		s := newServiceAccounts(&rest.Config{Host: "https://10.0.0.1:6443"}, client, "ns", map[string]string{"run": "r1"})
		defer s.Close()
		sends := func(want string, c *rest.Config) {
			t.Helper()
			to, err := apiclient.New(c, &apiclient.Roots{})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if h, err := to.Headers(); err != nil || h.Get("Authorization") != "Bearer "+want {
				t.Errorf("%v (%v), want %s", h, err, want)
			}
		}
		one, err := s.For(t.Context(), "sg-0")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute) // of the bubble's clock
		two, err := s.For(t.Context(), "sg-1")
		if err != nil {
			t.Fatal(err)
		}
		proxies, err := s.ForProxies(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sends("sg-0-1", one)
		sends("sg-1-1", two)
		sends("kube-proxy-1", proxies)
		time.Sleep(48*time.Minute - time.Minute + time.Second) // the first one's renewal is refused
		sends("sg-0-1", one)
		time.Sleep(TokenRetry)
		sends("sg-0-2", one)
		sends("sg-1-1", two)
		time.Sleep(time.Minute)
		sends("sg-1-2", two)
		if again, err := s.For(t.Context(), "sg-1"); err != nil {
			t.Error(err)
		} else {
			sends("sg-1-2", again)
		}
		accounts, err := client.CoreV1().ServiceAccounts("ns").List(t.Context(), metav1.ListOptions{LabelSelector: "run=r1"})
		if err != nil || len(accounts.Items) != 3 {
			t.Errorf("accounts %v, %v", accounts, err)
		}
		s.Close()
		time.Sleep(time.Hour)
		sends("sg-1-2", two)
	})
}
