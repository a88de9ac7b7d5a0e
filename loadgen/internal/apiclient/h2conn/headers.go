package h2conn

import (
	"net/http"

	"golang.org/x/net/http2"
)

// maxHeaderBlock and maxContinuations limit one header block. They are far above what an API server sends.
const (
	maxHeaderBlock   = 64 << 10
	maxContinuations = 32
)

type blockReader struct {
	bytes  []byte
	frames int
	ended  bool // whether the HEADERS frame has END_STREAM
}

// headers collects the frames of a header block, and passes the complete block to the method header.
func (c *Conn) headers(f frame) error {
	whole := f.flags.Has(http2.FlagHeadersEndHeaders)
	b := &c.block
	if f.kind == http2.FrameHeaders {
		if err := c.opened(f.id); err != nil {
			return err
		}
		*b = blockReader{ended: f.flags.Has(http2.FlagHeadersEndStream)}
		if whole {
			return c.header(f.id, f.payload, b.ended)
		}
	}
	if b.frames++; b.frames > maxContinuations || len(b.bytes)+len(f.payload) > maxHeaderBlock {
		return &ProtocolError{Code: http2.ErrCodeEnhanceYourCalm, Reason: "endless headers"}
	}
	b.bytes = append(b.bytes, f.payload...)
	if !whole {
		return nil
	}
	block := b.bytes
	b.bytes = nil
	return c.header(f.id, block, b.ended)
}

func (c *Conn) header(id uint32, block []byte, ended bool) error {
	var h fields
	if !c.fields.read(block, &h) {
		return &ProtocolError{Code: http2.ErrCodeCompression, Reason: "header block cannot be decoded"}
	}
	s := c.begin(id)
	if s == nil {
		return nil
	}
	switch {
	case h.invalid != "":
	case s.headed && h.pseudo:
		h.invalid = "pseudo-header field in trailers"
	case s.headed && !ended:
		h.invalid = "trailers that do not end the response"
	case !s.headed && h.Status == 0:
		h.invalid = "a response without :status"
	case h.Status == http.StatusSwitchingProtocols:
		h.invalid = "status 101"
	case h.Status != 0 && h.Status < 200 && ended:
		h.invalid = "an informational response that ends the stream"
	}
	if h.invalid != "" {
		c.finish(s, false)
		return malformed(id, h.invalid)
	}
	if !s.headed && h.Status >= 200 { // neither an informational response nor trailers
		s.headed, s.length = true, h.length
		if s.head || h.Status == http.StatusNotModified {
			s.length = -1
		}
		s.handler.Header(h.Header)
	}
	c.finish(s, ended)
	return nil
}
