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

// OpenSink opens the sink for copies of audit lines. The target is Syslog or the absolute path of
// a file.
func OpenSink(target string) (Sink, error) {
	if target == Syslog {
		return newSyslog("/dev/log", "/var/run/syslog", "/var/run/log")
	}
	if !filepath.IsAbs(target) {
		return nil, fmt.Errorf("audit log %q: want the absolute path of a file, or %s", target, Syslog)
	}
	f := &fileSink{path: target}
	return f, f.open()
}

// fileSink appends to a file, one JSON object per line.
type fileSink struct {
	path string
	file *os.File
	torn bool // the file ends in the middle of a line
}

const (
	// writeTime bounds a write to a target that may block, such as a pipe without a reader.
	writeTime = 2 * time.Second
	fileMode  = 0o600 // the lines contain job definitions
)

func (f *fileSink) Whole() bool { return true }

// open opens the file, and makes it if it is missing. It checks that the file's last line is
// complete.
func (f *fileSink) open() (err error) {
	flags := os.O_RDWR | os.O_CREATE | os.O_APPEND
	if info, err := os.Stat(f.path); err == nil && !info.Mode().IsRegular() {
		flags = os.O_WRONLY | os.O_APPEND | nonblock // a pipe may have no reader
	}
	if f.file, err = os.OpenFile(f.path, flags, fileMode); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}

	f.torn = false
	if info, err := f.file.Stat(); err == nil && info.Mode().IsRegular() && info.Size() > 0 {
		last := make([]byte, 1)
		_, err := f.file.ReadAt(last, info.Size()-1)
		f.torn = err == nil && last[0] != '\n' // we died while writing, or the disk was full
	}
	return nil
}

// Write appends lines. If the file was renamed or removed, for example by log rotation, Write
// creates a new file.
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
		f.Close() // the next write opens and checks it
		return fmt.Errorf("audit log: %w", err)
	}

	f.torn = false
	return nil
}

// rotated reports whether the path no longer leads to the open file.
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

// syslogSink sends to the local syslog daemon, in the format of its socket.
type syslogSink struct {
	sockets []string
	conn    net.Conn
}

func newSyslog(sockets ...string) (*syslogSink, error) {
	s := &syslogSink{sockets: sockets}
	return s, s.connect()
}

// Whole returns false, because daemons cut lines longer than a few kilobytes.
func (s *syslogSink) Whole() bool { return false }

func (s *syslogSink) connect() (err error) {
	for _, socket := range s.sockets {
		if s.conn, err = net.DialTimeout("unixgram", socket, writeTime); err == nil {
			return nil
		}
	}
	return fmt.Errorf("audit log: this machine has no syslog: %w", err)
}

const syslogPriority = 10<<3 | 5 // facility authpriv, which only administrators can read, with severity notice

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
		_, err := fmt.Fprintf(s.conn, "<%d>%s go-crontab[%d]: %s",
			syslogPriority, time.Now().Format(time.Stamp), os.Getpid(), line)
		if err != nil {
			s.Close() // the daemon may have been restarted
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
