package execute

import "os"

// feed returns the end of a pipe out of which a command reads text. It is written beside the command, which may never
// read; done ends that.
func feed(text string) (r *os.File, done func(), err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = w.WriteString(text) // EPIPE: it did not want all of it
		_ = w.Close()
	}()
	return r, func() { _ = w.Close(); <-written }, nil
}
