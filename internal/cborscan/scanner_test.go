package cborscan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/fxamacker/cbor/v2"

	"github.com/stormglass/stormglass/internal/jsonscan"
)

// wanted derives from a key's name whether a test keeps, enters or skips its value.
func wanted(key string) want {
	switch {
	case strings.HasPrefix(key, "keep"):
		return content
	case strings.HasPrefix(key, "enter"):
		return members
	}
	return nothing
}

// reduced returns the fields of an object that a scanner must return.
func reduced(object map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range object {
		switch value := value.(type) {
		case map[string]any:
			if wanted(key) == members {
				out[key] = reduced(value)
			}
		case string:
			if wanted(key) == content {
				out[key] = value
			}
		case int64:
			if wanted(key) == content {
				out[key] = fmt.Sprint(value)
			}
		case cbor.Tag:
			if wanted(key) == content {
				out[key] = string(value.Content.([]byte))
			}
		}
	}
	return out
}

// scan passes text to a scanner in pieces, and collects the tokens.
func scan(s *Scanner, text []byte, piece func(left int) int) (all []map[string]any, err error) {
	var open []map[string]any
	var keys []string
	key := ""
	for len(text) > 0 {
		p := bytes.Clone(text[:piece(len(text))]) // overwritten afterwards, because the scanner must not keep references to a piece
		text = text[len(p):]
		for rest := p; len(rest) > 0; {
			n, token, err := s.Next(rest)
			if err != nil {
				return all, err
			}
			rest = rest[n:]
			switch token {
			case jsonscan.None:
				if len(rest) > 0 {
					panic("no token, and not all is read")
				}
			case jsonscan.Key:
				switch key = string(s.Text()); wanted(key) {
				case content:
					s.Keep()
				case members:
					s.Enter()
				}
			case jsonscan.String, jsonscan.Number:
				open[len(open)-1][key] = string(s.Text())
			case jsonscan.Object:
				open, keys = append(open, map[string]any{}), append(keys, key)
			case jsonscan.End:
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

// value returns a random value, in which objects and lists are nested at most depth levels deep.
func value(r *rand.Rand, depth int) any {
	text := func() string { return strings.Repeat("xyz", r.IntN(30)) }
	switch n := r.IntN(9); {
	case n < 3 && depth > 0:
		object := map[string]any{}
		for range r.IntN(5) {
			object[[]string{"keep", "enter", "other", ""}[r.IntN(4)]+fmt.Sprint(r.IntN(30))] = value(r, depth-1)
		}
		return object
	case n == 3 && depth > 0:
		list := []any{}
		for range r.IntN(30) {
			list = append(list, value(r, depth-1))
		}
		return list
	case n == 4:
		return r.Int64() >> r.IntN(64)
	case n == 5:
		return -r.Int64() >> r.IntN(64)
	case n == 6:
		return []any{nil, true, 1.5, 1e300, cbor.Tag{Number: 22, Content: []byte(text())}}[r.IntN(5)]
	}
	return text()
}

// encoder returns a function that encodes like API servers, with text as byte strings.
func encoder(t *testing.T) func(v any) []byte {
	t.Helper()
	mode, err := cbor.EncOptions{String: cbor.StringToByteString}.EncMode()
	if err != nil {
		t.Fatal(err)
	}
	return func(v any) []byte {
		text, err := mode.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
}

// TestScanner encodes random objects, scans them in random pieces, and compares the tokens with the
// objects.
func TestScanner(t *testing.T) {
	const seed = 1
	t.Logf("seed %d", seed)
	r, encode := rand.New(rand.NewPCG(seed, 2)), encoder(t)
	for range 3000 {
		var text []byte
		want := []map[string]any{}
		for range 1 + r.IntN(3) {
			object := map[string]any{"enter": value(r, 4), "keep": value(r, 1), "list": value(r, 3)}
			if r.IntN(2) == 0 {
				text = append(text, 0xd9, 0xd9, 0xf7)
			}
			text, want = append(text, encode(object)...), append(want, reduced(object))
		}
		s := Scanner{Stream: true, LongestKey: 100, LongestValue: 1000}
		most := 1 + r.IntN(40)
		got, err := scan(&s, text, func(left int) int { return min(left, 1+r.IntN(most)) })
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Fatalf("found %v, %v, want %v in %x", got, err, want, text)
		}
		one := Scanner{LongestKey: 100, LongestValue: 1000}
		if _, err := scan(&one, text, func(left int) int { return left }); (err == nil) != (len(want) == 1) {
			t.Fatalf("as one item: %v in %x", err, text)
		}
	}
}

// TestEndsComeWithTheirPiece checks that Next returns all tokens of a piece before the next piece: otherwise an event
// would be counted late.
func TestEndsComeWithTheirPiece(t *testing.T) {
	text := encoder(t)(map[string]any{"enter": map[string]any{"enter": map[string]any{"keep": ""}}})
	s := Scanner{Stream: true, LongestKey: 100, LongestValue: 1000}
	for range 3 {
		if got, err := scan(&s, text, func(left int) int { return left }); err != nil || len(got) != 1 {
			t.Fatalf("%v, %v", got, err)
		}
	}
}

func TestItemsOfIndefiniteLength(t *testing.T) {
	for text, want := range map[string]map[string]any{
		"\xbf\x44keep\x41a\xff":                                         {"keep": "a"},
		"\xbf\x45enter\xbf\x44keep\x01\xff\xff":                         {"enter": map[string]any{"keep": "1"}},
		"\xa2\x44list\x9f\x01\xbf\x41a\x9f\xff\xff\xff\x44keep\x38\x63": {"keep": "-100"},
		"\xa1\x44keep\x3b\xff\xff\xff\xff\xff\xff\xff\xff":              {"keep": "-18446744073709551616"},
		"\xbf\xff": {},
	} {
		for n := 1; n <= len(text); n++ {
			s := Scanner{LongestKey: 100, LongestValue: 1000}
			got, err := scan(&s, []byte(text), func(left int) int { return min(left, n) })
			if err != nil || len(got) != 1 || !reflect.DeepEqual(got[0], want) {
				t.Errorf("%x in pieces of %d: %v, %v", text, n, got, err)
			}
		}
	}
}

func TestMalformed(t *testing.T) {
	for name, text := range map[string]string{
		"reserved":                      "\x1c",
		"a break of nothing":            "\xff",
		"a break of a definite map":     "\xa1\xff",
		"a break before a value":        "\xbf\x41a\xff",
		"a break after a tag":           "\x9f\xc1\xff",
		"a tag without a number":        "\xdf",
		"a key that is a number":        "\xa1\x01\x01",
		"a key that is a map":           "\xa1\xa0\x01",
		"a string of indefinite length": "\xa1\x41a\x5f\x41a\xff",
		"a number of indefinite length": "\x1f",
		"a map of 2^63 entries":         "\xbb\xff\xff\xff\xff\xff\xff\xff\xff",
		"deep":                          strings.Repeat("\x81", deepest+1) + "\x01",
		"more after the end":            "\xa0\xa0",
		"a map that is cut":             "\xa1\x41a",
		"a string that is cut":          "\xa1\x41a\x45abc",
		"a head that is cut":            "\xa1\x41a\x19\x01",
		"a tag without its item":        "\xd9\xd9\xf7",
		"JSON text instead of CBOR":     `{"kind":"Status"}`,
		"a value that is too long":      "\xa1\x44keep\x5a\x00\x01\x00\x00",
	} {
		s := Scanner{LongestKey: 100, LongestValue: 1000}
		if got, err := scan(&s, []byte(text), func(left int) int { return left }); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	s := Scanner{LongestKey: 100, LongestValue: 1000}
	if _, err := scan(&s, []byte("\xa1\x44keep\x5a\x00\x01\x00\x00"), func(left int) int { return left }); !errors.Is(err, jsonscan.ErrLong) {
		t.Errorf("%v", err)
	}
	if _, err := scan(&Scanner{Stream: true}, []byte("\x01"), func(left int) int { return left }); err == nil {
		t.Error("the scanner accepts a sequence of numbers")
	}
}

// FuzzScanner checks that the scanner accepts only well-formed CBOR, and that the cuts between pieces make no difference.
func FuzzScanner(f *testing.F) {
	f.Add([]byte("\xd9\xd9\xf7\xa2\x44type\x45ADDED\x46object\xa1\x48metadata\xbf\x4fresourceVersion\x427\xff\xff"), byte(1))
	f.Add([]byte("\x9f\x01\xf9\x3c\x00\xff"), byte(3))
	f.Fuzz(func(t *testing.T, text []byte, most byte) {
		s := Scanner{LongestKey: 100, LongestValue: 1000}
		got, err := scan(&s, text, func(left int) int { return min(left, 1+int(most)) })
		s.Reset()
		whole, all := scan(&s, text, func(left int) int { return left })
		if (err == nil) != (all == nil) || err == nil && !reflect.DeepEqual(got, whole) {
			t.Fatalf("in pieces: %v, %v; in one piece: %v, %v", got, err, whole, all)
		}
		if err == nil && len(text) > 0 {
			mode, err := cbor.DecOptions{MaxNestedLevels: 2 * deepest}.DecMode()
			if err != nil {
				t.Fatal(err)
			}
			if wrong := mode.Wellformed(text); wrong != nil {
				t.Fatalf("taken: %v", wrong)
			}
		}
	})
}
