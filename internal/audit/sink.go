package audit

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"
)

// Syslog is the target that names the syslog of the machine.
const Syslog = "syslog"

// OpenSink opens what copies of audit lines go to: "syslog", or the path of a file.
func OpenSink(target string) (Sink, error) {
	if target == Syslog {
		return newSyslog("/dev/log", "/var/run/syslog", "/var/run/log")
	}
	if !filepath.IsAbs(target) {
		return nil, fmt.Errorf("audit log %q: want the path of a file from / on, or %s", target, Syslog)
	}
	f := &fileSink{path: target}
	return f, f.open()
}

// fileSink appends to a file, one line of JSON each.
type fileSink struct {
	path string
	file *os.File
	torn bool // the file ends in the middle of a line
}

const (
	// writeTime bounds a write to what may take no more, such as a pipe that nobody reads.
	writeTime = 2 * time.Second
	fileMode  = 0o600 // definitions of jobs are in it
)

func (f *fileSink) Whole() bool { return true }

func (f *fileSink) open() (err error) {
	flags := os.O_RDWR | os.O_CREATE | os.O_APPEND
	if info, err := os.Stat(f.path); err == nil && !info.Mode().IsRegular() {
		flags = os.O_WRONLY | os.O_APPEND | nonblock // a pipe: nobody may read it
	}
	if f.file, err = os.OpenFile(f.path, flags, fileMode); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}

	f.torn = false
	if info, err := f.file.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		last := make([]byte, 1)
		_, err := f.file.ReadAt(last, info.Size()-1)
		f.torn = err == nil && last[0] != '\n' // we died, or the disk was full
	}
	return nil
}

// Write appends lines. A file that was renamed or removed since, as log rotation does, is made again.
func (f *fileSink) Write(lines [][]byte) error {
	if f.file != nil && f.rotated() {
		f.Close()
	}
	if f.file == nil {
		if err := f.open(); err != nil {
			return err
		}
	}

	text := append(bytes.Join(lines, []byte{'\n'}), '\n')
	if f.torn {
		text = append([]byte{'\n'}, text...)
	}
	if err := f.file.SetWriteDeadline(time.Now().Add(writeTime)); err != nil && !errors.Is(err, os.ErrNoDeadline) {
		return fmt.Errorf("audit log: %w", err)
	}
	n, err := f.file.Write(text)
	if err != nil {
		f.torn = n > 0 && text[n-1] != '\n' || n == 0 && f.torn
		f.Close() // it is opened and looked at next time
		return fmt.Errorf("audit log: %w", err)
	}
	f.torn = false
	return nil
}

func (f *fileSink) rotated() bool {
	now, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return true
	}
	have, err2 := f.file.Stat()
	return err == nil && err2 == nil && !os.SameFile(now, have)
}

func (f *fileSink) Close() error {
	if f.file == nil {
		return nil
	}
	file := f.file
	f.file = nil
	return file.Close()
}

// syslogSink sends to the syslog of the machine, in the form that its local socket takes.
type syslogSink struct {
	sockets []string
	conn    net.Conn
}

func newSyslog(sockets ...string) (*syslogSink, error) {
	s := &syslogSink{sockets: sockets}
	return s, s.connect()
}

// Whole: daemons cut lines that are longer than some kilobytes.
func (s *syslogSink) Whole() bool { return false }

func (s *syslogSink) connect() (err error) {
	for _, socket := range s.sockets {
		if s.conn, err = net.DialTimeout("unixgram", socket, writeTime); err == nil {
			return nil
		}
	}
	return fmt.Errorf("audit log: no syslog answers on this machine: %w", err)
}

const syslogPriority = 10<<3 | 5 // authpriv, which only administrators read; notice

func (s *syslogSink) Write(lines [][]byte) error {
	if s.conn == nil {
		if err := s.connect(); err != nil {
			return err
		}
	}
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	for _, line := range lines {
		if _, err := fmt.Fprintf(s.conn, "<%d>%s go-crontab[%d]: %s", syslogPriority, time.Now().Format(time.Stamp), os.Getpid(), line); err != nil {
			s.Close() // the daemon may have been started again
			return fmt.Errorf("audit log: %w", err)
		}
	}
	return nil
}

func (s *syslogSink) Close() error {
	if s.conn == nil {
		return nil
	}
	conn := s.conn
	s.conn = nil
	return conn.Close()
}
