package h2conn

import (
	"encoding/binary"
	"io"

	"golang.org/x/net/http2"
)

const frameHeaderLen = 9

// frame is a received frame, or a part of a DATA frame. Its payload is valid only until the next frame is read.
type frame struct {
	kind  http2.FrameType
	flags http2.Flags
	id    uint32
	// payload is the content of the frame, without padding and priority. For DATA, it may be a part of the content.
	payload []byte
	// size is the number of bytes of DATA that count for flow control, including padding.
	size int
	last bool
}

// frameReader splits the bytes from a server into frames. It returns a DATA frame in parts, as the bytes arrive, so the
// frame may be larger than the buffer. An error is a *ProtocolError or an error of r. If r ends, the error is io.EOF
// between two frames and io.ErrUnexpectedEOF within a frame. After a *ProtocolError whose Stream is not 0, reading may
// continue.
type frameReader struct {
	r     io.Reader
	small int // length of buf, unless a frame requires a longer one
	buf   []byte
	at    int // buf[at:end] holds the bytes that were read from r but not returned
	end   int

	data  frame  // the current DATA frame
	left  int    // number of bytes of the current DATA frame that next has not returned yet
	block uint32 // stream whose header block is incomplete; 0 if none
}

func newFrameReader(r io.Reader, size int) frameReader {
	return frameReader{r: r, small: size, buf: make([]byte, size)}
}

// next returns the next frame or the next part of a DATA frame.
func (f *frameReader) next() (frame, error) {
	if f.left > 0 {
		return f.piece()
	}
	h, err := f.need(frameHeaderLen)
	if err != nil {
		return frame{}, err
	}
	length := int(h[0])<<16 | int(h[1])<<8 | int(h[2])
	fr := frame{
		kind: http2.FrameType(h[3]), flags: http2.Flags(h[4]),
		id: binary.BigEndian.Uint32(h[5:]) & (1<<31 - 1), last: true,
	}
	if length > maxFrame {
		return fr, &ProtocolError{Code: http2.ErrCodeFrameSize, Reason: "frame of more than 16 KiB"}
	}
	if fr.kind == http2.FrameData && fr.id != 0 && !fr.flags.Has(http2.FlagDataPadded) {
		if err := f.order(fr); err != nil {
			return fr, err
		}
		f.at += frameHeaderLen
		if length == 0 {
			return fr, nil
		}
		f.data, f.left = fr, length
		return f.piece()
	}
	whole, err := f.need(frameHeaderLen + length)
	if err != nil {
		return fr, unexpected(err)
	}
	if err := f.order(fr); err != nil { // must come after f.need: if that fails, the next call reads this frame again
		return fr, err
	}
	f.at += frameHeaderLen + length
	fr.payload, fr.size = whole[frameHeaderLen:], length
	return fr, fr.check()
}

func (f *frameReader) piece() (frame, error) {
	if f.at == f.end {
		if err := f.fill(); err != nil {
			return f.data, unexpected(err)
		}
	}
	n := min(f.left, f.end-f.at)
	fr := f.data
	fr.payload, fr.size = f.buf[f.at:f.at+n], n
	f.at += n
	f.left -= n
	fr.last = f.left == 0
	return fr, nil
}

// need returns the next n bytes without consuming them. n is at most maxFrame plus the size of a frame header.
func (f *frameReader) need(n int) ([]byte, error) {
	for f.end-f.at < n {
		if f.at+n > len(f.buf) {
			f.room(n)
		}
		if err := f.fill(); err != nil {
			if f.at < f.end {
				err = unexpected(err)
			}
			return nil, err
		}
	}
	return f.buf[f.at : f.at+n], nil
}

// room moves buf[at:end] to the start of the buffer, and makes the buffer at least n bytes long.
func (f *frameReader) room(n int) {
	to := f.buf
	if n > len(f.buf) || len(f.buf) > f.small && n <= f.small && f.end-f.at <= f.small {
		to = make([]byte, max(n, f.small))
	}
	f.end = copy(to, f.buf[f.at:f.end])
	f.buf, f.at = to, 0
}

func (f *frameReader) fill() error {
	if f.at == f.end {
		f.at, f.end = 0, 0
	}
	n, err := f.r.Read(f.buf[f.end:])
	f.end += n
	if n > 0 {
		return nil // ignore err: the next read returns it again
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// order returns an error if another frame interrupts a header block (RFC 9113, 4.3).
func (f *frameReader) order(fr frame) error {
	switch {
	case f.block != 0 && (fr.kind != http2.FrameContinuation || fr.id != f.block):
		return violation("frame within a header block")
	case f.block == 0 && fr.kind == http2.FrameContinuation:
		return violation("CONTINUATION without a header block")
	}
	if fr.kind == http2.FrameHeaders || fr.kind == http2.FrameContinuation {
		f.block = fr.id
		if fr.flags.Has(http2.FlagHeadersEndHeaders) {
			f.block = 0
		}
	}
	return nil
}

// check returns an error if RFC 9113, section 6, does not allow the frame. It also removes padding and priority from
// the payload.
func (fr *frame) check() error {
	n := len(fr.payload)
	size := func(ok bool) error {
		if ok {
			return nil
		}
		return fr.wrongLength()
	}
	switch fr.kind {
	case http2.FrameData, http2.FrameHeaders, http2.FrameContinuation, http2.FramePriority, http2.FramePushPromise:
		if fr.id == 0 {
			return violation(fr.kind.String() + " frame without a stream")
		}
	case http2.FrameSettings, http2.FramePing, http2.FrameGoAway:
		if fr.id != 0 && !(fr.kind == http2.FramePing && n != 8) && !(fr.kind == http2.FrameSettings && fr.flags.Has(http2.FlagSettingsAck) && n > 0) {
			return violation(fr.kind.String() + " frame on a stream")
		}
	}
	switch fr.kind {
	case http2.FrameData, http2.FrameHeaders:
		return fr.unpad()
	case http2.FramePriority:
		return size(n == 5)
	case http2.FrameSettings:
		if fr.flags.Has(http2.FlagSettingsAck) {
			return size(n == 0)
		}
		for p := fr.payload; n%6 == 0 && len(p) > 0; p = p[6:] {
			if http2.SettingID(binary.BigEndian.Uint16(p)) == http2.SettingInitialWindowSize && binary.BigEndian.Uint32(p[2:]) > largestWindow {
				return &ProtocolError{Code: http2.ErrCodeFlowControl, Reason: "initial window over 2^31-1"}
			}
		}
		return size(n%6 == 0)
	case http2.FramePing:
		return size(n == 8)
	case http2.FrameGoAway:
		return size(n >= 8)
	case http2.FrameRSTStream:
		if n == 4 && fr.id == 0 {
			return violation("RST_STREAM frame without a stream")
		}
		return size(n == 4)
	case http2.FrameWindowUpdate:
		if n == 4 && fr.number() == 0 {
			return malformed(fr.id, "WINDOW_UPDATE of 0") // if fr.id is 0, this error ends the connection
		}
		return size(n == 4)
	}
	return nil
}

// unpad removes the padding of DATA and HEADERS, and the priority of HEADERS. DATA and HEADERS have the same padding
// flag.
func (fr *frame) unpad() error {
	pad := 0
	if fr.flags.Has(http2.FlagDataPadded) {
		if len(fr.payload) < 1 {
			return fr.wrongLength()
		}
		pad, fr.payload = int(fr.payload[0]), fr.payload[1:]
	}
	if fr.kind == http2.FrameHeaders && fr.flags.Has(http2.FlagHeadersPriority) {
		if len(fr.payload) < 5 {
			return fr.wrongLength()
		}
		fr.payload = fr.payload[5:]
	}
	if pad > len(fr.payload) {
		if fr.kind == http2.FrameHeaders {
			return malformed(fr.id, "padding longer than the frame")
		}
		return violation("padding longer than the frame")
	}
	fr.payload = fr.payload[:len(fr.payload)-pad]
	return nil
}

func (fr *frame) wrongLength() error {
	return &ProtocolError{Code: http2.ErrCodeFrameSize, Reason: fr.kind.String() + " frame of a wrong length"}
}

// number returns the first number in the payload, without the reserved bit: the increment of a WINDOW_UPDATE, or the
// last stream id of a GOAWAY.
func (fr *frame) number() uint32 { return binary.BigEndian.Uint32(fr.payload) & (1<<31 - 1) }

func appendFrame(b []byte, kind http2.FrameType, flags http2.Flags, id uint32, length int) []byte {
	b = append(b, byte(length>>16), byte(length>>8), byte(length), byte(kind), byte(flags))
	return binary.BigEndian.AppendUint32(b, id)
}

// appendNumber appends a WINDOW_UPDATE or RST_STREAM frame, whose payload is the number n.
func appendNumber(b []byte, kind http2.FrameType, id, n uint32) []byte {
	return binary.BigEndian.AppendUint32(appendFrame(b, kind, 0, id, 4), n)
}
