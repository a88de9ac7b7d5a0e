package object

import "math/rand/v2"

const letters = "abcdefghijklmnopqrstuvwxyz0123456789"

// payload is text that is another at every turn: an update that changes nothing is not written to etcd. Its
// letters need no escaping in JSON and are base64.
type payload struct {
	text []byte // twice the largest size
}

func newPayload(largest int, seed int64) payload {
	random := rand.New(rand.NewPCG(uint64(seed), 0x7061796c6f6164))
	text := make([]byte, 2*largest)
	for i := range text {
		text[i] = letters[random.IntN(len(letters))]
	}
	return payload{text}
}

// counted is how many letters at a payload's head count the turns.
const counted = 8

// append appends so many letters. No two turns are the same where there is room for eight.
func (p payload) append(b []byte, size int, turn int64) []byte {
	if size <= 0 {
		return b
	}
	n := uint64(turn)
	from := int(n % uint64(size))
	at := len(b)
	b = append(b, p.text[from:from+size]...)
	for i := range min(size, counted) {
		b[at+i] = letters[n%uint64(len(letters))]
		n /= uint64(len(letters))
	}
	return b
}
