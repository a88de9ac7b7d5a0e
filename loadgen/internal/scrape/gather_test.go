package scrape

import (
	"bytes"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"
)

// trickle is a connection on which a piece arrives every 100 us, by the test's
// clock.
type trickle struct {
	net.Conn
	began time.Time
	text  []byte
	at    int
	reads int
}

const (
	pieceLength = 4 << 10
	pieceEvery  = 100 * time.Microsecond
)

func (c *trickle) Read(p []byte) (int, error) {
	if c.at == len(c.text) {
		return 0, io.EOF
	}
	c.reads++
	for {
		come := min(int(time.Since(c.began)/pieceEvery)*pieceLength, len(c.text))
		if come > c.at {
			n := copy(p, c.text[c.at:come])
			c.at += n
			return n, nil
		}
		time.Sleep(pieceEvery)
	}
}

// Small pieces are read completely, and in few reads.
func TestSmallPiecesAreReadTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text := bytes.Repeat([]byte("apiserver_request_total 1\n"), 2<<20/26)
		under := &trickle{began: time.Now(), text: text}
		got, err := io.ReadAll(&gathering{Conn: under})
		if err != nil || !bytes.Equal(got, text) {
			t.Fatalf("read %d of %d bytes, %v", len(got), len(text), err)
		}
		if pieces := len(text) / pieceLength; under.reads > pieces/10 {
			t.Errorf("%d reads of %d pieces", under.reads, pieces)
		}
		if late := time.Since(under.began) - time.Duration(len(text)/pieceLength)*pieceEvery; late > 2*gatherPause {
			t.Errorf("the end was read %v after it arrived", late)
		}
	})
}
