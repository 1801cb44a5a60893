package job

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"sync"
)

// Encoding says how the head and the tail of an output are written.
type Encoding int8

// The encodings.
const (
	Plain   Encoding = 0
	Deflate Encoding = 1
)

// packLeast is from how many bytes on an output is worth compressing: a line or two are not.
const packLeast = 512

// unpackMost bounds what comes of a stored output: more than any run keeps.
const unpackMost = 64 << 20

var packers = sync.Pool{New: func() any { w, _ := flate.NewWriter(nil, flate.BestSpeed); return w }}

// Kept is how many bytes of the output are kept, however they are encoded.
func (o *Output) Kept() int {
	if o.Encoding != Plain {
		return o.Size
	}
	return len(o.Head) + len(o.Tail)
}

// Pack compresses what is kept, if that makes it smaller by a tenth at least.
func (o *Output) Pack() {
	size := o.Kept()
	if o.Encoding != Plain || size < packLeast {
		return
	}
	head, tail := pack(o.Head), pack(o.Tail)
	if len(head)+len(tail) <= size*9/10 {
		o.Head, o.Tail, o.Encoding, o.Size = head, tail, Deflate, size
	}
}

func pack(text []byte) []byte {
	if len(text) == 0 {
		return nil
	}
	var b bytes.Buffer
	b.Grow(len(text) / 2)
	w := packers.Get().(*flate.Writer)
	defer packers.Put(w)
	w.Reset(&b)
	w.Write(text) // a buffer takes everything
	w.Close()
	return b.Bytes()
}

// Unpack undoes Pack.
func (o *Output) Unpack() error {
	switch o.Encoding {
	case Plain:
		return nil
	case Deflate:
	default:
		return fmt.Errorf("output is encoded in a way that this version does not know: %d", o.Encoding)
	}
	head, err := unpack(o.Head)
	if err != nil {
		return err
	}
	tail, err := unpack(o.Tail)
	if err != nil {
		return err
	}
	o.Head, o.Tail, o.Encoding, o.Size = head, tail, Plain, 0
	return nil
}

func unpack(text []byte) ([]byte, error) {
	if len(text) == 0 {
		return nil, nil
	}
	out, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(text)), unpackMost))
	if err != nil {
		return nil, fmt.Errorf("unpack output: %w", err)
	}
	return out, nil
}
