package execute

import (
	"bytes"
	"io"
	"sync"
	"time"

	"go-crontab/job"
)

// output keeps the first and the last bytes of a command's output, and counts all bytes. It reads
// directly into its buffers, which grow by doubling: a silent command costs half a KiB, a loud one
// at most the limit. If a job keeps more than the limit, the rest goes to a temporary file. In
// addition there are stamps of 24 bytes each: at most 4,096, or one for each 256 bytes to keep,
// whichever is more.
type output struct {
	head, tail ends
	bytes      int64          // length of the output, with stars for secrets
	lines      int64          // line ends in it
	came       int64          // bytes that were read
	sink       func(p []byte) // receives the live output; nil: no receiver
	hiding     *masking       // hides secrets before the bytes are kept or passed on; nil: no secrets
	stamps     stamper

	most    int   // bytes to keep; a file is used only for more than head and tail hold
	rest    *rest // the file; nil: not needed yet, or given up
	restErr error // why the file was given up

	apart *apart // nil: there is one stream
}

// apart is for a command whose stdout and stderr are read apart.
type apart struct {
	mu     sync.Mutex // held to read from either stream and take the bytes
	behind bool       // the last read from stdout was full, so stdout may hold more
	hiding *masking   // of stderr
}

// readSize is the size of a read that does not go directly into a buffer.
const readSize = 4 << 10

// ends holds up to limit bytes. Once it is full, it holds the latest bytes.
type ends struct {
	limit int
	kept  []byte
	next  int // index of the oldest byte, which the next one replaces, once full
}

// newOutput returns an output that keeps up to keep bytes, at least 1: half from the beginning, half from the end.
func newOutput(keep int) *output {
	return &output{
		head: ends{limit: keep / 2}, tail: ends{limit: keep - keep/2}, most: keep, stamps: stamper{began: time.Now()},
	}
}

// newCapture returns the output of an attempt. It holds keep bytes in memory. If the job keeps
// more, the rest goes to a file.
func newCapture(keep int, a *Attempt) *output {
	o := newOutput(keep)
	o.most = max(keep, int(a.Output.Keep))
	o.sink, o.hiding = a.Sink, a.known.hiding()
	if a.Output.MarkStderr {
		o.apart = &apart{hiding: a.known.hiding()}
		o.stamps.apart = true
	}
	return o
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
	if o.apart != nil {
		return o.readOf(r, false)
	}
	if o.hiding != nil {
		return o.readHiding(r)
	}

	o.makeRoom()
	e := &o.tail
	if !o.head.full() {
		e = &o.head
	}

	free := e.free()
	n, err := r.Read(free)
	o.note(free[:n], false)
	e.took(n)
	o.came += int64(n)
	return err
}

// readHiding reads once, and keeps the bytes that the masking passes on.
func (o *output) readHiding(r io.Reader) error {
	var buffer [readSize]byte
	n, err := r.Read(buffer[:])
	o.came += int64(n)
	o.take(o.hiding.next(nil, buffer[:n]), false)
	return err
}

// readOf reads once from one of two streams. It cannot hide a secret of which a command writes
// half to each stream. The caller holds apart.mu while both streams are being read.
func (o *output) readOf(r io.Reader, stderr bool) error {
	var buffer [readSize]byte
	n, err := r.Read(buffer[:])
	n = max(n, 0)
	p, hiding := buffer[:n], o.hiding
	if stderr {
		hiding = o.apart.hiding
	}
	if hiding != nil {
		p = hiding.next(nil, p)
	}
	o.came += int64(n)
	o.take(p, stderr)
	return err
}

// take keeps bytes.
func (o *output) take(p []byte, stderr bool) {
	for len(p) > 0 {
		o.makeRoom()
		e := &o.tail
		if !o.head.full() {
			e = &o.head
		}
		n := copy(e.free(), p)
		o.note(p[:n], stderr)
		e.took(n)
		p = p[n:]
	}
}

// note counts bytes that are about to be kept, and passes them on.
func (o *output) note(p []byte, stderr bool) {
	if len(p) == 0 {
		return
	}
	if o.sink != nil {
		o.sink(p)
	}
	o.stamps.note(o, stderr)
	if o.rest != nil {
		o.fail(o.rest.write(p))
	}
	o.bytes += int64(len(p))
	o.lines += int64(bytes.Count(p, newline))
}

var newline = []byte{'\n'}

// makeRoom opens the file when the tail is full and the job keeps more than memory holds. It
// copies the tail to the file.
func (o *output) makeRoom() {
	if o.rest != nil || o.restErr != nil || o.most <= o.head.limit+o.tail.limit || !o.tail.full() {
		return
	}

	var err error
	if o.rest, err = newRest(o.head.limit, o.tail.limit, o.most); err == nil {
		err = o.rest.write(o.tail.kept)
	}
	o.fail(err)
}

// fail gives up the file after an error. Head and tail are still kept.
func (o *output) fail(err error) {
	if err == nil {
		return
	}
	o.restErr = err
	if o.rest != nil {
		o.rest.Close()
		o.rest = nil
	}
}

// output returns the kept output. Afterwards nothing may be read.
func (o *output) output() job.Output {
	if o.hiding != nil {
		o.take(o.hiding.end(nil), false)
		o.hiding = nil
	}
	if o.apart != nil && o.apart.hiding != nil {
		o.take(o.apart.hiding.end(nil), true)
		o.apart.hiding = nil
	}

	out := job.Output{Head: o.head.kept, Bytes: o.bytes, Stamps: o.stamps.encode()}
	tail := append(o.tail.kept[o.tail.next:], o.tail.kept[:o.tail.next]...)
	if o.bytes <= int64(len(o.head.kept)+len(tail)) {
		out.Head = append(out.Head, tail...)
		if o.rest != nil {
			o.rest.Close()
		}
		return out
	}

	out.Tail, out.Lines = tail, o.lines
	if r := o.rest; r != nil {
		r.over(&out)
		out.Rest, out.Parts, out.PartBytes = r, r.parts(), r.size()
	}
	return out
}

// cutReason returns a reason if less output is kept than the job wants.
func (o *output) cutReason() (why job.Reason, cut bool) {
	if o.restErr == nil {
		return why, false
	}
	return reason(job.ReasonOutputCut, "most of its output was not kept, because "+o.restErr.Error()), true
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
