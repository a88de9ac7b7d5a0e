package capture

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// unpacker reads a sequence of MessagePack values (github.com/msgpack/msgpack, spec.md).
type unpacker struct {
	from interface {
		io.Reader
		io.ByteReader
	}
	depth int
	left  int // how many more elements the current value may have
}

// Limits of a value. The unpacker treats a file that exceeds them as damaged.
const (
	deepestValue  = 200
	longestString = 16 << 20
	// maxElements limits the memory of a value to about a gigabyte: a list of zeros takes 16 times as much memory as
	// space in the file. An event of a large cluster has less than a million elements.
	maxElements = 8 << 20
	stringUnit  = 64 // number of bytes of a string that count as one element
)

var (
	errDeep = errors.New("the data is nested too deeply")
	errLong = errors.New("the data has a string of more than 16 MiB")
	errMany = fmt.Errorf("the data has a value of more than %d elements", maxElements)
)

// value reads a value: nil, bool, int64, uint64, float64, string, []any or map[string]any. It skips map entries whose
// key is not a string.
func (u *unpacker) value() (any, error) {
	if u.depth == 0 {
		u.left = maxElements
	}
	if u.depth++; u.depth > deepestValue {
		return nil, errDeep
	}
	defer func() { u.depth-- }()
	c, err := u.from.ReadByte()
	switch {
	case err != nil:
		return nil, cutOff(err)
	case c <= 0x7f:
		return int64(c), nil
	case c >= 0xe0:
		return int64(int8(c)), nil
	case c <= 0x8f:
		return u.object(int(c & 0x0f))
	case c <= 0x9f:
		return u.array(int(c & 0x0f))
	case c <= 0xbf:
		return u.text(int(c & 0x1f))
	}
	switch c {
	case 0xc0:
		return nil, nil
	case 0xc2, 0xc3:
		return c == 0xc3, nil
	case 0xc4, 0xc5, 0xc6: // bin 8, 16, 32
		return u.sized(1<<(c-0xc4), u.text)
	case 0xca:
		n, err := u.number(4)
		return float64(math.Float32frombits(uint32(n))), err
	case 0xcb:
		n, err := u.number(8)
		return math.Float64frombits(n), err
	case 0xcc, 0xcd, 0xce, 0xcf: // uint 8, 16, 32, 64
		return u.unsigned(1 << (c - 0xcc))
	case 0xd0, 0xd1, 0xd2, 0xd3: // int 8, 16, 32, 64
		return u.signed(1 << (c - 0xd0))
	case 0xd9, 0xda, 0xdb: // str 8, 16, 32
		return u.sized(1<<(c-0xd9), u.text)
	case 0xdc, 0xdd: // array 16, 32
		return u.sized(2<<(c-0xdc), u.array)
	case 0xde, 0xdf: // map 16, 32
		return u.sized(2<<(c-0xde), u.object)
	}
	return nil, fmt.Errorf("the data has a value of type 0x%02x, which SimKube traces do not use", c)
}

// number reads a big-endian number of the given size in bytes.
func (u *unpacker) number(bytes int) (uint64, error) {
	var buf [8]byte
	if _, err := io.ReadFull(u.from, buf[8-bytes:]); err != nil {
		return 0, cutOff(err)
	}
	return binary.BigEndian.Uint64(buf[:]), nil
}

func (u *unpacker) unsigned(bytes int) (any, error) {
	n, err := u.number(bytes)
	if n > math.MaxInt64 {
		return n, err
	}
	return int64(n), err
}

func (u *unpacker) signed(bytes int) (any, error) {
	n, err := u.number(bytes)
	shift := 64 - 8*bytes
	return int64(n<<shift) >> shift, err
}

// sized reads a length that is stored in the given number of bytes. It then calls read with the length.
func (u *unpacker) sized(bytes int, read func(int) (any, error)) (any, error) {
	n, err := u.number(bytes)
	if err != nil {
		return nil, err
	}
	return read(int(n))
}

// claim counts elements of the current value before the unpacker reads them. It fails if the value has too many
// elements.
func (u *unpacker) claim(elements int) error {
	if u.left -= elements; u.left < 0 {
		return errMany
	}
	return nil
}

func (u *unpacker) text(length int) (any, error) {
	if length > longestString {
		return nil, errLong
	}
	if err := u.claim(length / stringUnit); err != nil {
		return nil, err
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(u.from, text); err != nil {
		return nil, cutOff(err)
	}
	return string(text), nil
}

func (u *unpacker) array(length int) (any, error) {
	if err := u.claim(length); err != nil {
		return nil, err
	}
	var all []any // not allocated in advance, because a damaged length may be large
	for range length {
		v, err := u.value()
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

func (u *unpacker) object(length int) (any, error) {
	if err := u.claim(2 * length); err != nil {
		return nil, err
	}
	all := map[string]any{}
	for range length {
		key, err := u.value()
		if err != nil {
			return nil, err
		}
		v, err := u.value()
		if err != nil {
			return nil, err
		}
		if name, ok := key.(string); ok {
			all[name] = v
		}
	}
	return all, nil
}

// mapLength reads the header of a map and returns its length. The caller then reads the keys and values.
func (u *unpacker) mapLength() (int, error) { return u.head(0x80, 0xde) }

// arrayLength reads the header of an array and returns its length. The caller then reads the values.
func (u *unpacker) arrayLength() (int, error) { return u.head(0x90, 0xdc) }

// head reads the header of a map or array: one byte, followed by a length of 16 or 32 bits if there are more than 15
// elements.
func (u *unpacker) head(short, long byte) (int, error) {
	c, err := u.from.ReadByte()
	switch {
	case err != nil:
		return 0, cutOff(err)
	case c&0xf0 == short:
		return int(c & 0x0f), nil
	case c == long || c == long+1:
		n, err := u.number(2 << (c - long))
		return int(n), err
	}
	return 0, fmt.Errorf("found a value of type 0x%02x instead of a map or a list", c)
}

// cutOff converts an io.EOF within a value to io.ErrUnexpectedEOF.
func cutOff(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
