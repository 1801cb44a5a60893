package execute

import (
	"bytes"
	"fmt"
	"os"

	"go-crontab/job"
)

// rest is the part of a kept output that does not fit in memory. It is in a temporary file without
// a name, so it vanishes with this process. The file holds the rest of the first half, followed by
// the last half as a ring.
type rest struct {
	file *os.File

	from   int64 // the output's offset of the first byte in the file
	middle int64 // where the first half ends
	ring   int64 // bytes of the last half
	at     int64 // the offset of the next byte

	first, last extent // what is to be stored; set by over
	before      int64  // line ends before first
	lines       int64  // line ends before the output's tail
}

// extent is the range [from, to) of the output.
type extent struct{ from, to int64 }

func (e extent) size() int64 { return max(0, e.to-e.from) }

// partSize is the size of a stored part, uncompressed.
const partSize = 256 << 10

// newRest makes the file for an output that keeps `most` bytes. Memory holds head and tail of
// them.
func newRest(head, tail, most int) (*rest, error) {
	f, err := os.CreateTemp("", "go-crontab-output-")
	if err != nil {
		return nil, fmt.Errorf("no temporary file could be made: %w", err)
	}
	if err := os.Remove(f.Name()); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("the temporary file could not be hidden: %w", err)
	}

	ring := max(int64(most)/2, int64(tail))
	return &rest{file: f, from: int64(head), middle: max(int64(most)-ring, int64(head)), ring: ring, at: int64(head)}, nil
}

// write takes the next bytes of the output.
func (r *rest) write(p []byte) error {
	for len(p) > 0 {
		place, room := r.place(r.at)
		n := min(int64(len(p)), room)
		if _, err := r.file.WriteAt(p[:n], place); err != nil {
			return fmt.Errorf("the temporary file could not be written: %w", err)
		}
		r.at += n
		p = p[n:]
	}
	return nil
}

// place returns where the file has the byte at an offset. room is the number of bytes from there
// on without a break.
func (r *rest) place(at int64) (place, room int64) {
	if at < r.middle {
		return at - r.from, r.middle - at
	}
	in := (at - r.middle) % r.ring
	return r.middle - r.from + in, r.ring - in
}

// over is called when the output is complete. It sets which parts of the file are stored.
func (r *rest) over(o *job.Output) {
	tail := o.Bytes - int64(len(o.Tail))
	r.before = int64(bytes.Count(o.Head, newline))
	r.lines = o.Lines - int64(bytes.Count(o.Tail, newline))
	r.first = extent{r.from, min(r.middle, tail)}
	r.last = extent{max(r.middle, o.Bytes-r.ring), tail}
	if r.first.to >= r.last.from { // nothing is missing
		r.first.to = max(r.first.to, r.last.to)
		r.last = extent{tail, tail}
	}
}

func (r *rest) size() int { return int(r.first.size() + r.last.size()) }

func (r *rest) parts() int {
	return int((r.first.size()+partSize-1)/partSize + (r.last.size()+partSize-1)/partSize)
}

// Pieces implements job.Rest.
func (r *rest) Pieces(yield func(job.Piece) error) error {
	if err := r.each(r.first, r.before, yield); err != nil {
		return err
	}

	// The line ends of dropped bytes were not counted, so count back from the tail.
	ends := int64(0)
	count := func(p job.Piece) error {
		ends += int64(bytes.Count(p.Data, newline))
		return nil
	}
	if err := r.each(r.last, 0, count); err != nil {
		return err
	}
	return r.each(r.last, r.lines-ends, yield)
}

// each reads an extent, part by part. line is the number of line ends before it.
func (r *rest) each(e extent, line int64, yield func(job.Piece) error) error {
	buffer := make([]byte, min(partSize, e.size()))
	for at := e.from; at < e.to; {
		p := job.Piece{At: at, Data: buffer[:min(partSize, e.to-at)], Line: line}
		for data := p.Data; len(data) > 0; {
			place, room := r.place(at)
			n := min(int64(len(data)), room)
			if _, err := r.file.ReadAt(data[:n], place); err != nil {
				return fmt.Errorf("the temporary file of an output could not be read: %w", err)
			}
			at += n
			data = data[n:]
		}

		line += int64(bytes.Count(p.Data, newline))
		if err := yield(p); err != nil {
			return err
		}
	}
	return nil
}

// Close implements job.Rest.
func (r *rest) Close() { _ = r.file.Close() }
