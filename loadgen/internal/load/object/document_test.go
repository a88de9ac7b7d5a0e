package object

import (
	"encoding/json"
	"strings"
	"testing"
)

// verdict reports whether d accepts a document in pieces of n bytes. 0 means one piece.
func verdict(d *document, text []byte, n int) bool {
	d.reset()
	if n == 0 {
		n = max(len(text), 1)
	}
	for len(text) > 0 {
		k := min(n, len(text))
		if d.write(text[:k]) != nil {
			return false
		}
		text = text[k:]
	}
	return d.whole() == nil
}

// The verdict equals encoding/json's, however the text is split.
func FuzzDocument(f *testing.F) {
	for _, text := range []string{
		``, ` `, `{}`, `[]`, `null`, `true`, `fals`, `falsey`, `"`, `"a"`, `"\u00e9\n\/"`, `"\x"`, `"\u12g4"`, "\"\x01\"", "\"\xff\"",
		`0`, `-`, `-0`, `01`, `1.`, `1.5e`, `1.5e+10`, `1e5 `, `1 2`, `[1,2`, `[1,]`, `[,1]`, `[1 2]`, `{"a"}`, `{"a":}`, `{"a":1,}`,
		`{"a":1,"b":[{"c":null}]}`, `{"a":1]`, `[1}`, `]`, `{"a" : 0.25 , "b":[ ] }`, `[0,-1.5,true,"x"]`, `{1:2}`, `[[[[]]]]`,
		`{"metadata":{"continue":"abc","resourceVersion":"7"},"items":[{"metadata":{"continue":"no"}}]}`,
		strings.Repeat("[", 10000) + strings.Repeat("]", 10000), strings.Repeat("[", 10001) + strings.Repeat("]", 10001),
		`{"a long key of a document, in which there are more letters than are kept":"` + strings.Repeat("x", 300) + `\\"}`,
	} {
		f.Add([]byte(text), uint8(1))
	}
	f.Fuzz(func(t *testing.T, text []byte, n uint8) {
		want := json.Valid(text)
		var d document
		for _, n := range []int{0, 1, int(n)} {
			if got := verdict(&d, text, n); got != want {
				t.Fatalf("valid in pieces of %d: %v, want %v: %.200q", n, got, want, text)
			}
		}
	})
}

// The kept fields equal the fields that encoding/json reads, wherever metadata
// stands.
func TestMetadataOfAnAnswer(t *testing.T) {
	long := strings.Repeat("items are long ", 50)
	for _, text := range []string{
		`{"kind":"List","metadata":{"resourceVersion":"12","continue":"tok=en/+"},"items":[{"metadata":{"resourceVersion":"3","continue":"x"}}]}`,
		`{"items":[{"metadata":{"continue":"no"},"text":"` + long + `"}],"kind":"List","metadata":{"continue":"late","resourceVersion":"9"}}`,
		`{"metadata":{"continue":"","resourceVersion":"12"},"continue":"no","spec":{"continue":"no"}}`,
		`{"metadata":{"continue":"a\"\u003d\\b"}}`,
		`{"metadata":{"labels":{"continue":"no"},"continue":"yes"}}`,
		`{"metadata":{"continue":"first"},"metadata":{"continue":"last"}}`, `{"metadata":{"continue":"first","continue":"last","continue":7}}`,
		`{"meta\u0064ata":{"\u0063\u006f\u006e\u0074\u0069\u006e\u0075\u0065":"escaped"}}`,
		`[{"metadata":{"continue":"no"}}]`, `{"metadata":["continue","no"]}`, `{"metadata":{"continue":7}}`,
	} {
		var want struct {
			Metadata struct{ Continue, ResourceVersion any }
		}
		_ = json.Unmarshal([]byte(text), &want) // some texts do not fit the struct
		token, _ := want.Metadata.Continue.(string)
		version, _ := want.Metadata.ResourceVersion.(string)
		for n := range len(text) {
			var d document
			if !verdict(&d, []byte(text), n) {
				t.Fatalf("invalid in pieces of %d: %s", n, text)
			}
			if got := string(d.token); got != token {
				t.Errorf("token %q, want %q, in pieces of %d: %s", got, token, n, text)
			}
			if got := string(d.version); got != version {
				t.Errorf("version %q, want %q: %s", got, version, text)
			}
		}
	}
}

// A server cannot make a document keep more than the wanted values.
func TestTokensWithoutEndAreRefused(t *testing.T) {
	var d document
	err := d.write([]byte(`{"metadata":{"continue":"`))
	for i := 0; i < 100 && err == nil; i++ {
		err = d.write([]byte(strings.Repeat("x", 1000)))
	}
	if err == nil {
		t.Error("the document accepts a token of 100 kB")
	}
}

func BenchmarkDocument(b *testing.B) {
	text := []byte(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[`)
	for range 100 {
		text = append(text, `{"metadata":{"name":"load-1","namespace":"storm","uid":"0f3a7c8e-5e0a-4a3e-8d55-7f2f6c1b2a11","resourceVersion":"123456","creationTimestamp":"2026-11-02T10:00:00Z","labels":{"stormglass.dev/load":"load"}},"data":{"payload":"`...)
		text = append(append(text, strings.Repeat("x", 1024)...), `"}},`...)
	}
	text = append(text[:len(text)-1], `]}`...)
	var d document
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if !verdict(&d, text, 16384) {
			b.Fatal("invalid")
		}
	}
}
