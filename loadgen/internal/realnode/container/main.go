// Container is the one program of the images of calibration: it runs until it is asked to
// end, or for a while, and answers probes.
package main

import (
	"flag"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	after := flag.Duration("after", 0, "end after this `time`; 0: when asked to")
	code := flag.Int("code", 0, "exit `code`")
	probes := flag.String("probes", "", "`address` at which probes are answered")
	flag.Parse()
	if *probes != "" {
		go func() {
			err := http.ListenAndServe(*probes, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			println(err.Error())
			os.Exit(1)
		}()
	}
	var end <-chan time.Time
	if *after > 0 {
		end = time.After(*after)
	}
	asked := make(chan os.Signal, 1)
	signal.Notify(asked, syscall.SIGTERM, syscall.SIGINT)
	select {
	case <-asked:
	case <-end:
	}
	os.Exit(*code)
}
