package execute

import (
	"io"

	"go-crontab/job"
)

// output keeps the first and the last bytes of a command's output, and counts all bytes. It reads directly into its
// buffers, which grow by doubling: a silent command costs half a KiB, a loud one at most the limit.
type output struct {
	head, tail ends
	bytes      int64          // length of the output, with stars for secrets
	came       int64          // bytes that were read
	sink       func(p []byte) // receives the live output; nil: no receiver
	hiding     *masking       // hides secrets before the bytes are kept or passed on; nil: no secrets
}

// ends holds up to limit bytes: the latest ones once it is full.
type ends struct {
	limit int
	kept  []byte
	next  int // index of the oldest byte, which the next one replaces, once full
}

// newOutput keeps up to keep bytes, at least 1: half from the beginning, half from the end.
func newOutput(keep int) *output {
	return &output{head: ends{limit: keep / 2}, tail: ends{limit: keep - keep/2}}
}

// readAll reads until the end, or until reading fails because r was closed or its deadline passed.
func (o *output) readAll(r io.Reader) error {
	for {
		if err := o.read(r); err != nil {
			if err == io.EOF {
				return nil
			}
			return err
		}
	}
}

// read reads once.
func (o *output) read(r io.Reader) error {
	if o.hiding != nil {
		return o.readHiding(r)
	}

	e := &o.tail
	if !o.head.full() {
		e = &o.head
	}

	free := e.free()
	n, err := r.Read(free)
	if n > 0 && o.sink != nil {
		o.sink(free[:n])
	}
	e.took(n)
	o.bytes += int64(n)
	o.came += int64(n)
	return err
}

// readHiding reads once, and keeps the bytes that the masking passes on.
func (o *output) readHiding(r io.Reader) error {
	var buffer [4 << 10]byte
	n, err := r.Read(buffer[:])
	o.came += int64(n)
	o.take(o.hiding.next(nil, buffer[:n]))
	return err
}

// take keeps bytes.
func (o *output) take(p []byte) {
	if len(p) > 0 && o.sink != nil {
		o.sink(p)
	}
	o.bytes += int64(len(p))

	for len(p) > 0 {
		e := &o.tail
		if !o.head.full() {
			e = &o.head
		}
		n := copy(e.free(), p)
		e.took(n)
		p = p[n:]
	}
}

// output returns the kept output. Nothing may be read after it.
func (o *output) output() job.Output {
	if o.hiding != nil {
		o.take(o.hiding.end(nil))
		o.hiding = nil
	}

	tail := append(o.tail.kept[o.tail.next:], o.tail.kept[:o.tail.next]...)
	if o.bytes > int64(len(o.head.kept)+len(tail)) {
		return job.Output{Head: o.head.kept, Tail: tail, Bytes: o.bytes}
	}
	return job.Output{Head: append(o.head.kept, tail...), Bytes: o.bytes}
}

func (e *ends) full() bool { return len(e.kept) == e.limit }

// free returns the buffer for the next bytes; it is empty only if the limit is 0.
func (e *ends) free() []byte {
	if e.full() {
		return e.kept[e.next:]
	}
	if len(e.kept) == cap(e.kept) {
		grown := make([]byte, len(e.kept), min(max(512, 2*cap(e.kept)), e.limit))
		copy(grown, e.kept)
		e.kept = grown
	}
	return e.kept[len(e.kept):cap(e.kept)]
}

// took notes that n bytes were written to the buffer that free returned.
func (e *ends) took(n int) {
	if e.full() {
		e.next = (e.next + n) % e.limit
		return
	}
	e.kept = e.kept[:len(e.kept)+n]
}
