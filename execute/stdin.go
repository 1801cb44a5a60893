package execute

import "os"

// feed returns the reading end of a pipe. A goroutine writes text into the pipe. The command may
// never read the text, so done ends the writing.
func feed(text string) (r *os.File, done func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = w.WriteString(text) // EPIPE: the command did not read all of it
		_ = w.Close()
	}()
	return r, func() { _ = w.Close(); <-written }, nil
}
