// Container is the program that all containers on real nodes run. It runs until a signal or for a given time, answers
// probes, and allocates memory.
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	after := flag.Duration("after", 0, "exit after this `time`; 0: exit only on a signal")
	code := flag.Int("code", 0, "exit `code` when the program ends without a signal")
	deaf := flag.Bool("deaf", false, "ignore termination signals")
	probes := flag.String("probes", "", "`address` at which probes are answered")
	answer := flag.Duration("answer-after", 0, "answer probes after this `time`; 0: immediately")
	fail := flag.Duration("fail-after", 0, "fail probes after this `time`; 0: never")
	failFor := flag.Duration("fail-for", 0, "after failing for this `time`, pass probes again; 0: never")
	check := flag.String("check", "", "act as a probe: exit with 0 if this `URL` answers with 200, otherwise with 1")
	allocate := flag.Int("allocate", 0, "instead of exiting, allocate this many `MiB` and keep running")
	api := flag.Bool("api", false, "get the version of the API server, as the pod's service account")
	report := flag.String("report", "", "`address` to which the pod's name, and its index in a Job, are written")
	flag.Parse()
	if *check != "" {
		os.Exit(probe(*check))
	}
	if *probes != "" {
		go serve(*probes, *answer, *fail, *failFor)
	}
	if *api {
		must(askAPI())
	}
	if *report != "" {
		must(reportTo(*report))
	}
	var end <-chan time.Time
	if *after > 0 {
		end = time.After(*after)
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT)
	for {
		select {
		case <-asked:
			if *deaf {
				continue
			}
			os.Exit(0)
		case <-end:
			if *allocate > 0 {
				use(*allocate)
				end = nil
				continue
			}
		}
		os.Exit(*code)
	}
}

func must(err error) {
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}

// serve starts to listen after the delay `after`, and responds to probes with 200. If fail is not 0, serve responds
// with 500 from the time fail later, for the time failFor. If failFor is 0, this failure does not end.
func serve(address string, after, fail, failFor time.Duration) {
	time.Sleep(after)
	var failing atomic.Bool
	if fail > 0 {
		time.AfterFunc(fail, func() {
			failing.Store(true)
			if failFor > 0 {
				time.AfterFunc(failFor, func() { failing.Store(false) })
			}
		})
	}
	must(http.ListenAndServe(address, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if failing.Load() {
			w.WriteHeader(http.StatusInternalServerError)
		}
	})))
}

func probe(url string) (code int) {
	answer, err := http.Get(url)
	if err != nil {
		fmt.Println(err)
		return 1
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		fmt.Println(answer.Status)
		return 1
	}
	return 0
}

// use allocates memory and touches each page of it.
func use(mebibytes int) {
	var all [][]byte
	for range mebibytes {
		block := bytes.Repeat([]byte{1}, 1<<20)
		all = append(all, block)
	}
	fmt.Println(len(all), "MiB")
}

const identity = "/var/run/secrets/kubernetes.io/serviceaccount/"

func askAPI() error {
	token, err := os.ReadFile(identity + "token")
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(identity + "ca.crt")
	if err != nil {
		return err
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	server := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT"))
	request, err := http.NewRequest(http.MethodGet, "https://"+server+"/version", nil)
	if err != nil {
		return err
	}
	request.Header.Set("Authorization", "Bearer "+string(token))
	answer, err := (&http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}, Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("the API server answers with %s: %s", answer.Status, body)
	}
	fmt.Println("the API server answers")
	return err
}

func reportTo(address string) error {
	conn, err := net.DialTimeout("tcp", address, 10*time.Second)
	if err != nil {
		return err
	}
	defer conn.Close()
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(conn, name, os.Getenv("JOB_COMPLETION_INDEX"))
	return err
}
