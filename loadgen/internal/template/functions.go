package template

import (
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"strings"
	"text/template"
	"time"

	"github.com/Masterminds/sprig/v3"
)

const (
	lower   = "abcdefghijklmnopqrstuvwxyz"
	digits  = "0123456789"
	letters = lower + "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
)

// excluded lists the sprig functions that templates cannot call. Functions that create keys or read the clock return
// different results at each call. A call of derivePassword takes 0.2 s. buildCustomCert is only useful with keys, and
// checks keys of any size.
var excluded = []string{
	"genPrivateKey", "genCA", "genCAWithKey", "genSelfSignedCert", "genSelfSignedCertWithKey", "genSignedCert", "genSignedCertWithKey",
	"bcrypt", "htpasswd", "encryptAES", "ago", "durationRound", "derivePassword", "buildCustomCert",
}

// Functions returns the sprig functions whose results depend only on their arguments, and sprig's random functions,
// which draw from random. Functions that repeat strings or create lists have size limits.
func Functions(random *rand.Rand) template.FuncMap {
	all := sprig.HermeticTxtFuncMap()
	for _, name := range excluded {
		delete(all, name)
	}
	all["mustToDate"] = time.Parse // as toDate, but sprig's functions use the time zone of the machine
	all["toDate"] = func(layout, text string) time.Time {
		t, _ := time.Parse(layout, text)
		return t
	}
	lines := func(text string) int { return 1 + strings.Count(text, "\n") }
	for name, pieces := range map[string]func(string) int{"repeat": func(text string) int { return max(len(text), 1) }, "indent": lines, "nindent": lines} {
		of := all[name].(func(int, string) string)
		all[name] = func(n int, text string) (string, error) {
			if err := countable(name, n, pieces(text)); err != nil {
				return "", err
			}
			return of(n, text), nil
		}
	}
	until, untilStep := all["until"].(func(int) []int), all["untilStep"].(func(int, int, int) []int)
	all["until"] = func(n int) ([]int, error) {
		if err := countable("until", n, 1); err != nil {
			return nil, err
		}
		return until(n), nil
	}
	all["untilStep"] = func(start, stop, step int) ([]int, error) {
		if step != 0 {
			if err := countable("untilStep", (stop-start)/step, 1); err != nil {
				return nil, err
			}
		}
		return untilStep(start, stop, step), nil
	}
	seq := all["seq"].(func(...int) string)
	all["seq"] = func(ends ...int) (string, error) {
		for _, end := range ends {
			if err := countable("seq", max(end, -end), 1); err != nil {
				return "", err
			}
		}
		return seq(ends...), nil
	}
	text := func(from string) func(int) (string, error) {
		return func(n int) (string, error) {
			if err := countable("a text", n, 1); err != nil {
				return "", err
			}
			var b strings.Builder
			for range n {
				b.WriteByte(from[random.IntN(len(from))])
			}
			return b.String(), nil
		}
	}
	all["randAlphaNum"] = text(letters + digits)
	all["randAlpha"] = text(letters)
	all["randNumeric"] = text(digits)
	all["randAscii"] = text(printable())
	all["randBytes"] = func(n int) (string, error) {
		if err := countable("randBytes", n, 1); err != nil {
			return "", err
		}
		bytes := make([]byte, max(n, 0))
		for i := range bytes {
			bytes[i] = byte(random.Uint32())
		}
		return base64.StdEncoding.EncodeToString(bytes), nil
	}
	all["randInt"] = func(from, to int) (int, error) {
		if to <= from {
			return 0, fmt.Errorf("randInt %d %d: the range from %d to %d is empty", from, to, from, to)
		}
		return from + random.IntN(to-from), nil
	}
	all["shuffle"] = func(text string) string {
		runes := []rune(text)
		random.Shuffle(len(runes), func(i, j int) { runes[i], runes[j] = runes[j], runes[i] })
		return string(runes)
	}
	all["uuidv4"] = func() string {
		a, b := random.Uint64(), random.Uint64()
		return fmt.Sprintf("%08x-%04x-4%03x-%04x-%012x", a>>32, a>>16&0xffff, a&0xfff, 0x8000|b>>48&0x3fff, b&0xffffffffffff)
	}
	return all
}

// countable returns an error if n elements of size bytes need too much memory. `what` is the function's name in the
// error.
func countable(what string, n, size int) error {
	if n > maxRepeated/size {
		return fmt.Errorf("%s of %d is too large: at most %d", what, n, maxRepeated/size)
	}
	return nil
}

func printable() string {
	var b strings.Builder
	for c := byte(' ' + 1); c < 127; c++ {
		b.WriteByte(c)
	}
	return b.String()
}
