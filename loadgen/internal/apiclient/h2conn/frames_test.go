package h2conn

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/iotest"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// told formats a frame as a string.
func told(kind http2.FrameType, flags http2.Flags, id uint32, payload []byte) string {
	return fmt.Sprintf("%v %x %d %x", kind, flags, id, payload)
}

// ours reads all frames, and the errors between and after them, with the package's reader. It joins the parts of DATA
// frames.
func ours(r io.Reader, size int) (all []string) {
	fr := newFrameReader(r, size)
	var data []byte
	for {
		f, err := fr.next()
		if foreign(f.kind) {
			return append(all, "foreign")
		}
		var protocol *ProtocolError
		if errors.As(err, &protocol) {
			all = append(all, fmt.Sprintf("error %v on %d", protocol.Code, protocol.Stream))
			if protocol.Stream != 0 {
				continue
			}
		}
		if err != nil {
			return all
		}
		if f.kind == http2.FrameData {
			if data = append(data, f.payload...); f.last {
				all = append(all, told(f.kind, f.flags, f.id, data))
				data = nil
			}
			continue
		}
		all = append(all, told(f.kind, f.flags, f.id, f.payload))
	}
}

// theirs reads all frames and errors with the standard decoder.
func theirs(p []byte) (all []string) {
	fr := http2.NewFramer(nil, bytes.NewReader(p))
	fr.SetMaxReadFrameSize(maxFrame)
	for {
		if head, _ := raw(p, len(all)); head != nil && foreign(http2.FrameType(head[3])) {
			return append(all, "foreign")
		}
		f, err := fr.ReadFrame()
		var stream http2.StreamError
		var conn http2.ConnectionError
		switch {
		case errors.As(err, &stream):
			all = append(all, fmt.Sprintf("error %v on %d", stream.Code, stream.StreamID))
			continue
		case errors.As(err, &conn):
			return append(all, fmt.Sprintf("error %v on 0", http2.ErrCode(conn)))
		case errors.Is(err, http2.ErrFrameTooLarge):
			return append(all, "error FRAME_SIZE_ERROR on 0")
		case err == io.ErrUnexpectedEOF && fr.ErrorDetail() == nil && whole(p, all):
			return append(all, "error FRAME_SIZE_ERROR on 0") // too short for its flags
		case err != nil:
			return all
		}
		h := f.Header()
		var payload []byte
		switch f := f.(type) {
		case *http2.DataFrame:
			payload = f.Data()
		case *http2.HeadersFrame:
			payload = f.HeaderBlockFragment()
		case *http2.ContinuationFrame:
			payload = f.HeaderBlockFragment()
		case *http2.SettingsFrame:
			_, payload = raw(p, len(all))
			tooLarge := false // the standard decoder checks only the first setting
			_ = f.ForeachSetting(func(s http2.Setting) error {
				tooLarge = tooLarge || s.ID == http2.SettingInitialWindowSize && s.Val > largestWindow
				return nil
			})
			if tooLarge {
				return append(all, "error FLOW_CONTROL_ERROR on 0")
			}
		default: // payload as on the wire
			_, payload = raw(p, len(all))
		}
		all = append(all, told(h.Type, h.Flags, h.StreamID, payload))
	}
}

// raw returns the header and the payload of the n-th frame of p, or nil if they
// are incomplete.
func raw(p []byte, n int) (header, payload []byte) {
	for {
		if len(p) < frameHeaderLen {
			return nil, nil
		}
		header, p = p[:frameHeaderLen], p[frameHeaderLen:]
		length := int(header[0])<<16 | int(header[1])<<8 | int(header[2])
		if len(p) < length {
			return header, nil
		}
		if n == 0 {
			return header, p[:length:length]
		}
		p, n = p[length:], n-1
	}
}

// whole reports whether the next frame is complete.
func whole(p []byte, seen []string) bool {
	_, payload := raw(p, len(seen))
	return payload != nil
}

// foreign reports whether clients do not accept a kind of frame, so that its contents do not matter.
func foreign(kind http2.FrameType) bool {
	return kind == http2.FramePushPromise || kind == http2.FramePriorityUpdate
}

// FuzzFrames checks that the reader returns the same frames and errors as the standard decoder, for pieces of any size.
func FuzzFrames(f *testing.F) {
	for _, seed := range seeds() {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		want := theirs(p)
		for name, got := range map[string][]string{
			"at once": ours(bytes.NewReader(p), smallBuffer), "by the byte": ours(iotest.OneByteReader(bytes.NewReader(p)), 16),
		} {
			if strings.Join(got, "\n") != strings.Join(want, "\n") {
				t.Errorf("read %s:\n%s\nwant:\n%s", name, strings.Join(got, "\n"), strings.Join(want, "\n"))
			}
		}
	})
}

func seeds() [][]byte {
	var b bytes.Buffer
	w := http2.NewFramer(&b, nil)
	w.AllowIllegalWrites = true
	_ = w.WriteSettings(http2.Setting{ID: http2.SettingMaxConcurrentStreams, Val: 100})
	_ = w.WriteSettingsAck()
	_ = w.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: answerBlock(200), PadLength: 3, Priority: http2.PriorityParam{Weight: 9}})
	_ = w.WriteContinuation(1, true, []byte("x"))
	_ = w.WriteData(1, false, bytes.Repeat([]byte("d"), 3000))
	_ = w.WriteDataPadded(1, true, []byte("end"), []byte{0, 0})
	_ = w.WritePing(true, [8]byte{1})
	_ = w.WriteWindowUpdate(0, 1)
	_ = w.WriteRSTStream(1, http2.ErrCodeCancel)
	_ = w.WriteGoAway(1, http2.ErrCodeNo, []byte("bye"))
	_ = w.WritePriority(3, http2.PriorityParam{})
	_ = w.WriteRawFrame(0xaa, 3, 5, []byte("unknown"))
	return [][]byte{
		b.Bytes(),
		// The frames below are invalid.
		appendNumber(nil, http2.FrameWindowUpdate, 3, 0),
		appendNumber(nil, http2.FrameWindowUpdate, 0, 0),
		appendNumber(nil, http2.FrameRSTStream, 0, 0),
		appendFrame(nil, http2.FrameData, 0, 0, 0),
		appendFrame(nil, http2.FrameContinuation, 0, 1, 0),
		appendFrame(nil, http2.FramePing, 0, 0, 0),
		append(appendFrame(nil, http2.FrameData, http2.FlagDataPadded, 1, 2), 9, 9),
		append(appendFrame(nil, http2.FrameHeaders, http2.FlagHeadersPadded|http2.FlagHeadersEndHeaders, 1, 2), 9, 9),
		appendFrame(nil, http2.FrameHeaders, http2.FlagHeadersPriority, 1, 0),
		appendFrame(nil, http2.FrameData, 0, 1, 1<<20),
		[]byte("HTTP/1.1 400 Bad Request\r\n\r\n"),
	}
}

// answerBlock returns a header block as Go's server encodes it.
func answerBlock(status int) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	e.SetMaxDynamicTableSize(0)
	for _, field := range [][2]string{
		{":status", fmt.Sprint(status)}, {"audit-id", "6a1f9d4e-7f0e-4b9c-9d0e-0a3f5a1a2b3c"}, {"cache-control", "no-cache, private"},
		{"content-type", "application/json"}, {"retry-after", "1"}, {"x-kubernetes-pf-flowschema-uid", "9d0e0a3f-5a1a-4b9c-9d0e-7f0e4b9c9d0e"},
		{"x-kubernetes-pf-prioritylevel-uid", "0a3f5a1a-2b3c-4b9c-9d0e-7f0e4b9c9d0e"}, {"content-length", "1024"}, {"date", "Mon, 02 Nov 2026 10:00:00 GMT"},
	} {
		_ = e.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]})
	}
	return b.Bytes()
}

// A field that is sent only as an index of the static table has the table's value, which is empty. The field counts as
// sent.
func TestEmptyFieldsOfTheTable(t *testing.T) {
	var got fields
	for _, block := range [][]byte{{0x88, 0x9c}, {0x88, 0x0f, 0x0d, 0x01, '5', 0x9c}} {
		if !new(fieldReader).read(block, &got) || got.invalid == "" {
			t.Errorf("%x: the reader accepts an empty content-length: %+v", block, got)
		}
	}
	if !new(fieldReader).read([]byte{0x88, 0x5f, 0x01, 'x', 0x9f}, &got) || got.invalid != "" || got.ContentType != "" {
		t.Errorf("content-type x, then an empty content-type: %+v", got)
	}
}

// FuzzFields checks that the package and the standard decoder return the same fields of header blocks, and refuse the
// same blocks.
func FuzzFields(f *testing.F) {
	f.Add(answerBlock(200))
	f.Add(answerBlock(429))
	f.Add([]byte{0x20, 0x88, 0x0f, 0x0d, 0x02, '4', '2'})
	f.Add([]byte{0x00, 0x07, ':', 's', 't', 'a', 't', 'u', 's', 0x03, '2', '0', '1'})
	f.Add([]byte{0x88, 0x88})
	f.Add([]byte{0x5f, 0x01, 'x', 0x88})
	f.Add([]byte{0x88, 0x0f, 0x0d, 0x02, '0', '5', 0x9c})
	f.Add([]byte{0x88, 0x5f, 0x01, 'x', 0x9f})
	f.Fuzz(func(t *testing.T, block []byte) {
		var got fields
		valid := new(fieldReader).read(block, &got)
		d := hpack.NewDecoder(0, nil)
		all, err := d.DecodeFull(block)
		switch {
		case !valid && err == nil:
			t.Fatalf("%x: the package cannot decode a valid block: %v", block, all)
		case !valid || err != nil || got.invalid != "":
			return // the package does not decode fields that it does not need
		}
		want, regular := http.Header{}, false
		for _, field := range all {
			if field.IsPseudo() && (regular || field.Name != ":status" || want.Get(":status") != "") {
				t.Fatalf("%x: the package accepts %v as a response", block, all)
			}
			regular = regular || !field.IsPseudo()
			want[field.Name] = append(want[field.Name], field.Value)
		}
		last := func(name string) string {
			if v := want[name]; len(v) > 0 {
				return v[len(v)-1]
			}
			return ""
		}
		status := ""
		if got.Status != 0 {
			status = fmt.Sprint(got.Status)
		}
		if status != last(":status") || got.ContentType != last("content-type") {
			t.Errorf("%x: fields %+v, want those in %v", block, got, all)
		}
		if length := last("content-length"); (length == "") != (got.length < 0) || length != "" && strings.TrimLeft(length, "0") != strings.TrimLeft(fmt.Sprint(got.length), "0") {
			t.Errorf("%x: content-length %d, want that in %v", block, got.length, all)
		}
	})
}

// BenchmarkFrames compares the package's and the standard decoder's cost of the two frames of a response with a body of
// 1 KB.
func BenchmarkFrames(b *testing.B) {
	const answers = 100
	var p []byte
	block, body := answerBlock(200), bytes.Repeat([]byte("x"), 1024)
	for range answers {
		p = append(appendFrame(p, http2.FrameHeaders, http2.FlagHeadersEndHeaders, 1, len(block)), block...)
		p = append(appendFrame(p, http2.FrameData, http2.FlagDataEndStream, 1, len(body)), body...)
	}
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		r := bytes.NewReader(p)
		fr := newFrameReader(r, largeBuffer)
		var reader fieldReader
		var h fields
		for b.Loop() {
			r.Reset(p)
			for {
				f, err := fr.next()
				if err != nil {
					break
				}
				if f.kind == http2.FrameHeaders && !reader.read(f.payload, &h) {
					b.Fatal("not decoded")
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*answers), "ns/answer")
	})
	b.Run("framer", func(b *testing.B) {
		b.ReportAllocs()
		r := bytes.NewReader(p)
		fr := http2.NewFramer(nil, r)
		fr.SetReuseFrames()
		fr.ReadMetaHeaders = hpack.NewDecoder(0, nil)
		for b.Loop() {
			r.Reset(p)
			for {
				if _, err := fr.ReadFrame(); err != nil {
					break
				}
			}
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*answers), "ns/answer")
	})
}
