package jsonscan

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// wish decides what a test does with the value of a key. The decision depends only on the key and the seed, so that the
// test can decide the same for the output of encoding/json.
type wish uint64

func (w wish) of(key string) want {
	h := fnv.New64a()
	_ = binary.Write(h, binary.LittleEndian, uint64(w))
	_, _ = h.Write([]byte(key))
	return want(h.Sum64() % 3)
}

// found holds the tokens of one object: the requested members, by key.
type found map[string]any

// reduced returns the members that a scanner must find in an object that encoding/json has decoded.
func (w wish) reduced(object map[string]any) found {
	out := found{}
	for key, value := range object {
		switch value := value.(type) {
		case map[string]any:
			if w.of(key) == members {
				out[key] = w.reduced(value)
			}
		case string, json.Number:
			if w.of(key) == content {
				out[key] = value
			}
		}
	}
	return out
}

// scanned passes text to a scanner in pieces, and collects the tokens.
func (w wish) scanned(s *Scanner, text []byte, piece func(left int) int) (all []found, err error) {
	var open []found
	var keys []string
	key := ""
	for len(text) > 0 {
		// Overwrite the piece afterwards, because the scanner must not keep references to it.
		p := bytes.Clone(text[:piece(len(text))])
		text = text[len(p):]
		for rest := p; len(rest) > 0; {
			n, token, err := s.Next(rest)
			if err != nil {
				return all, err
			}
			rest = rest[n:]
			switch token {
			case None:
				if len(rest) > 0 {
					panic("no token, and not all is read")
				}
			case Key:
				// Replace invalid UTF-8 as encoding/json does.
				key = string([]rune(string(s.Text())))
				delete(open[len(open)-1], key) // if a key occurs twice, the last value counts
				switch w.of(key) {
				case content:
					s.Keep()
				case members:
					s.Enter()
				}
			case String:
				open[len(open)-1][key] = string(s.Text())
			case Number:
				open[len(open)-1][key] = json.Number(s.Text())
			case Object:
				open, keys = append(open, found{}), append(keys, key)
			case End:
				last := len(open) - 1
				if last == 0 {
					all = append(all, open[0])
				} else {
					open[last-1][keys[last]] = open[last]
				}
				open, keys = open[:last], keys[:last]
			}
		}
		clear(p)
	}
	if !s.Complete() {
		return all, io.ErrUnexpectedEOF
	}
	return all, nil
}

// check compares a scanner's results for a text with encoding/json.
func check(t *testing.T, text []byte, stream bool, w wish, piece func(int) int) {
	t.Helper()
	s := Scanner{Stream: stream, LongestKey: len(text), LongestValue: len(text)}
	got, err := w.scanned(&s, text, piece)
	want, valid := reference(w, text, stream)
	if valid != (err == nil) {
		t.Fatalf("stream %v: error %v; encoding/json takes it: %v: %.300q", stream, err, valid, text)
	}
	if (valid || stream) && !reflect.DeepEqual(got, want) {
		t.Fatalf("stream %v: found %v, encoding/json %v: %.300q", stream, got, want, text)
	}
}

func reference(w wish, text []byte, stream bool) (all []found, ok bool) {
	if !stream && !json.Valid(text) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	for {
		var value any
		switch err := d.Decode(&value); {
		case err == io.EOF:
			return all, true
		case err != nil:
			return all, false
		}
		object, isObject := value.(map[string]any)
		switch {
		case isObject:
			all = append(all, w.reduced(object))
		case stream:
			return all, false
		}
	}
}

var texts = []string{
	``, ` `, `{}`, ` {} `, `[]`, `null`, `true`, `fals`, `falsey`, `"`, `"a"`, `"\u00e9\n\/"`, `"\x"`, `"\u12g4"`, "\"\x01\"", "\"\xff\"",
	`0`, `-`, `-0`, `01`, `1.`, `1.5e`, `1.5e+10`, `1e5 `, `1 2`, `[1,2`, `[1,]`, `[,1]`, `[1 2]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `+1`,
	`{"a":1,"b":[{"c":null}]}`, `{"a":1]`, `[1}`, `]`, `{"a" : 0.25 , "b":[ ] }`, `[0,-1.5,true,"x"]`, `{1:2}`, `[[[[]]]]`, `{} {}`, `{}{"a":{}}`, `{}x`,
	`{"a":{"b":{"c":"deep"},"c":-1.5E+3},"b":["a",{"a":"no"}],"c":{"a":{"b":"x"}}}`,
	`{"a":1,"a":"x","a":[]} {"a":[],"a":{"b":"c"}}`, "{\"a\":\"\xff\xfe\",\"\xff\":1,\"\xfe\":\"two\"}",
	`{"\u0061":"tab\t\"\\\/\b\f\n\r\u00E9","b":"\ud83d\ude00","c":"\ud83d","d":"\ud83d\u0061","e":"\ude00\ud83d\ude00"}`,
	`{"a":` + strings.Repeat(`[{"b":`, 70) + `1` + strings.Repeat(`}]`, 70) + `,"c":"x"}`,
	`{"a":` + strings.Repeat(`[{"b":`, 70) + `1` + strings.Repeat(`]}`, 70) + `}`,
	strings.Repeat(`{"a":`, 90) + `"x"` + strings.Repeat(`}`, 90),
	`{"` + strings.Repeat("k", 300) + `":"` + strings.Repeat("x", 300) + `\\"}`,
}

// pieces returns a function that cuts at random: it returns the length of the next piece.
func pieces(seed uint64) func(int) int {
	cut := rand.New(rand.NewPCG(seed, 1))
	return func(left int) int { return 1 + cut.IntN(min(left, 40)) }
}

func TestScannerReadsAsEncodingJSONDoes(t *testing.T) {
	for _, text := range texts {
		for seed := range uint64(20) {
			piece := pieces(seed)
			switch seed {
			case 0:
				piece = func(left int) int { return left }
			case 1:
				piece = func(int) int { return 1 }
			}
			for _, stream := range []bool{false, true} {
				check(t, []byte(text), stream, wish(seed), piece)
			}
		}
	}
}

// For any text, cut anywhere, the scanner returns the same values as encoding/json, or an error if encoding/json
// returns one.
func FuzzScanner(f *testing.F) {
	for i, text := range texts {
		f.Add([]byte(text), i%2 == 0, uint64(i))
	}
	f.Fuzz(func(t *testing.T, text []byte, stream bool, seed uint64) {
		check(t, text, stream, wish(seed), pieces(seed))
	})
}

func TestNestingIsBoundedAsInEncodingJSON(t *testing.T) {
	for _, stream := range []bool{false, true} {
		for _, depth := range []int{9_999, 10_000} { // and the object around them
			for _, brackets := range []string{"[]", "{}"} {
				inner, middle := brackets[:1], ""
				if brackets == "{}" {
					inner, middle = `{"a":`, "0"
				}
				text := `{"a":` + strings.Repeat(inner, depth) + middle + strings.Repeat(brackets[1:], depth) + `}`
				check(t, []byte(text), stream, wish(depth), func(left int) int { return left })
			}
		}
	}
}

// A server cannot make the scanner store long values.
func TestScannerKeepsNothingLong(t *testing.T) {
	for _, value := range []string{`"`, `1`} {
		s := Scanner{LongestKey: 10, LongestValue: 100}
		text := []byte(`{"a":` + value)
		n, token, err := s.Next(text)
		for token != Key && err == nil {
			var k int
			k, token, err = s.Next(text[n:])
			n += k
		}
		s.Keep()
		if _, _, err = s.Next(text[n:]); err != nil {
			t.Fatal(err)
		}
		for i := 0; i < 11 && err == nil; i++ {
			_, _, err = s.Next([]byte("0123456789"))
		}
		if err != ErrLong {
			t.Errorf("a value of 110 bytes and no end: %v", err)
		}
	}
	s := Scanner{LongestKey: 10, LongestValue: 100}
	var keys []string
	for _, piece := range []string{`{"` + strings.Repeat("k", 1<<20), strings.Repeat("k", 1<<20) + `":"x","b":"y"}`} {
		for n, rest := 0, []byte(piece); len(rest) > 0; rest = rest[n:] {
			var token Token
			var err error
			if n, token, err = s.Next(rest); err != nil {
				t.Fatal(err)
			}
			if token == Key {
				keys = append(keys, string(s.Text()))
			}
		}
	}
	if len(keys) != 1 || keys[0] != "b" || cap(s.partial) > 1<<10 {
		t.Errorf("keys %.40q, %d bytes kept", keys, cap(s.partial))
	}
}

// Keep has no effect except directly after a key.
func TestKeepIsOfTheKeyJustGiven(t *testing.T) {
	s := Scanner{LongestKey: 10, LongestValue: 10}
	var tokens []Token
	for n, rest := 0, []byte(`{"a":"x","b":"y","c":{"d":1}}`); len(rest) > 0; rest = rest[n:] {
		var token Token
		var err error
		if n, token, err = s.Next(rest); err != nil {
			t.Fatal(err)
		}
		tokens = append(tokens, token)
		if token != Key || string(s.Text()) == "a" {
			s.Keep()
		}
	}
	if want := []Token{Object, Key, String, Key, Key, End}; !slices.Equal(tokens, want) {
		t.Errorf("tokens %v, want %v", tokens, want)
	}
}

func TestScannerAllocatesNothing(t *testing.T) {
	text := []byte(`{"\u0061":"\ud83d\ude00 and plain text","n":-1.5e3,"b":` + strings.Repeat(`[{"b":`, 70) + `1` + strings.Repeat(`}]`, 70) + `}`)
	s := Scanner{Stream: true, LongestKey: 100, LongestValue: 100}
	for _, size := range []int{len(text), 7, 1} {
		read := func() {
			s.Reset()
			for rest := text; len(rest) > 0; {
				for p := rest[:min(size, len(rest))]; len(p) > 0; {
					n, token, err := s.Next(p)
					if err != nil {
						t.Fatal(err)
					}
					if token == Key {
						s.Keep()
					}
					p = p[n:]
				}
				rest = rest[min(size, len(rest)):]
			}
		}
		read() // enlarges the buffers as far as needed
		if n := testing.AllocsPerRun(100, read); n > 0 {
			t.Errorf("%v allocations in pieces of %d", n, size)
		}
	}
}
