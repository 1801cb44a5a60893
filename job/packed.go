package job

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"sync"
)

// Encoding is the encoding of an output's head and tail.
type Encoding int8

// The encodings.
const (
	Plain   Encoding = 0
	Deflate Encoding = 1
)

// packLeast is the smallest output to compress, in bytes. One or two lines are not worth
// compressing.
const packLeast = 512

// unpackMost bounds a decompressed text, in bytes. No run keeps so much.
const unpackMost = 64 << 20

var packers = sync.Pool{New: func() any { w, _ := flate.NewWriter(nil, flate.BestSpeed); return w }}

// Kept returns the number of kept bytes, uncompressed.
func (o *Output) Kept() int { return o.ends() + o.PartBytes }

// ends returns the length of head and tail, uncompressed.
func (o *Output) ends() int {
	if o.Encoding != Plain {
		return o.Size
	}
	return len(o.Head) + len(o.Tail)
}

// Pack compresses head and tail if that saves at least a tenth.
func (o *Output) Pack() {
	size := o.ends()
	if o.Encoding != Plain || size < packLeast {
		return
	}
	head, tail := pack(o.Head), pack(o.Tail)
	if len(head)+len(tail) <= size*9/10 {
		o.Head, o.Tail, o.Encoding, o.Size = head, tail, Deflate, size
	}
}

// PackPart compresses a part of an output if that saves at least a tenth.
func PackPart(text []byte) ([]byte, Encoding) {
	if packed := pack(text); len(packed) <= len(text)*9/10 {
		return packed, Deflate
	}
	return text, Plain
}

// UnpackPart undoes PackPart.
func UnpackPart(text []byte, e Encoding) ([]byte, error) {
	o := Output{Head: text, Encoding: e}
	err := o.Unpack()
	return o.Head, err
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
	w.Write(text) // a buffer never fails
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
