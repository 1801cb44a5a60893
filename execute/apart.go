package execute

import (
	"errors"
	"syscall"

	"golang.org/x/sys/unix"
)

// readApart reads stdout and stderr until both have ended. Two pipes do not show in which order
// their bytes were written. Usually the pipe that is written first is also read first. But the
// reader of stdout may lag behind a fast command. Then everything that stdout holds is read before
// bytes from stderr. So an error after much output stays after it.
func (c *command) readApart() {
	out, outErr := c.pipe.SyscallConn()
	err, errErr := c.stderr.SyscallConn()
	if outErr != nil || errErr != nil {
		return // the pipes are closed
	}
	stdout := nonblocking(-1)
	_ = out.Control(func(fd uintptr) { stdout = nonblocking(fd) }) // c.pipe stays open until readApart has returned

	other := make(chan struct{})
	go func() {
		defer close(other)
		c.kept.readStream(err, func(fd nonblocking) error {
			if c.kept.apart.behind {
				c.kept.drain(stdout)
			}
			return c.kept.readOf(fd, true)
		})
	}()

	c.kept.readStream(out, func(fd nonblocking) error {
		came := c.kept.came
		err := c.kept.readOf(fd, false)
		c.kept.apart.behind = c.kept.came-came == readSize
		return err
	})
	<-other
}

// readStream calls read whenever a stream has bytes, until the stream ends or its deadline passes.
func (o *output) readStream(raw syscall.RawConn, read func(nonblocking) error) {
	for {
		var err error
		stopped := raw.Read(func(fd uintptr) bool {
			o.apart.mu.Lock()
			defer o.apart.mu.Unlock()
			err = read(nonblocking(fd))
			return !errors.Is(err, unix.EAGAIN)
		})
		if stopped != nil || err != nil && !errors.Is(err, unix.EAGAIN) {
			return
		}
	}
}

// maxDrain bounds drain against a command that goes on writing. Our pipes hold no more than this.
const maxDrain = 64 << 10

// drain reads the bytes that stdout holds now. It ignores the end of stdout, because the reader of
// stdout also sees that end.
func (o *output) drain(stdout nonblocking) {
	for enough := o.came + maxDrain; o.came < enough; {
		if err := o.readOf(stdout, false); err != nil {
			return
		}
	}
}
