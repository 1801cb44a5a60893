package result

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"go-crontab/internal/failpoint"
	"go-crontab/sql/trip"
)

// Spooled is an end that is not known to be written, with the owner of its run.
type Spooled struct {
	Owner trip.Owner
	End   trip.End
}

// Spool keeps the ends of a node that must stop while MySQL is out of reach. It keeps them in one
// file, in a folder that no other node uses.
type Spool struct {
	dir  string
	lock *os.File
}

// OpenSpool makes the folder and locks it until Close, or until the process ends. Two nodes with
// one spool would remove each other's ends. Only the owner of the folder may read it, because ends
// hold output of commands.
func OpenSpool(dir string) (*Spool, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "outcomes.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("spool: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = errors.New("another node uses this folder; give each node its own")
		}
		return nil, fmt.Errorf("spool: %s: %w", dir, err)
	}
	return &Spool{dir, f}, nil
}

// Close releases the folder.
func (s *Spool) Close() {
	// Closing the file alone may not release the lock at once: for a moment, a command that is
	// just being forked also has the file open.
	_ = syscall.Flock(int(s.lock.Fd()), syscall.LOCK_UN)
	s.lock.Close()
}

func (s *Spool) path() string { return filepath.Join(s.dir, "outcomes.jsonl") }

// Save writes the waiting ends of recorders to the disk, and returns their number. They replace
// the file's earlier ends. The node has loaded those: by now they are written, or wait in a
// recorder again.
func (s *Spool) Save(recorders ...*Recorder) (int, error) {
	var ends []Spooled
	for _, r := range recorders {
		ends = append(ends, r.spooled()...)
	}
	if len(ends) == 0 {
		return 0, nil
	}

	f, err := os.OpenFile(s.path()+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fmt.Errorf("spool: %w", err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	enc := json.NewEncoder(w)
	for i := range ends {
		if err := enc.Encode(&ends[i]); err != nil {
			return 0, fmt.Errorf("spool: %w", err)
		}
	}
	if err := w.Flush(); err != nil {
		return 0, fmt.Errorf("spool: %w", err)
	}
	if err := f.Sync(); err != nil {
		return 0, fmt.Errorf("spool: %w", err)
	}

	// If we die here, the old file is still complete.
	failpoint.Here("before", "rename spool")
	if err := os.Rename(f.Name(), s.path()); err != nil {
		return 0, fmt.Errorf("spool: %w", err)
	}
	if d, err := os.Open(s.dir); err == nil {
		d.Sync() // not supported by some file systems
		d.Close()
	}
	failpoint.Here("behind", "rename spool")
	return len(ends), nil
}

// Load reads the ends that an earlier process has spooled. It skips lines that a crash has torn,
// and lines that only another version understands. torn reports whether it skipped lines.
func (s *Spool) Load() (ends []Spooled, torn bool, err error) {
	f, err := os.Open(s.path())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, fmt.Errorf("spool: %w", err)
	}
	defer f.Close()
	for r := bufio.NewReader(f); ; {
		line, err := r.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			var e Spooled
			if json.Unmarshal(line, &e) == nil && e.Owner > 0 && e.End.Run > 0 {
				ends = append(ends, e)
			} else {
				torn = true
			}
		}

		switch {
		case errors.Is(err, io.EOF):
			return ends, torn, nil
		case err != nil:
			return ends, torn, fmt.Errorf("spool: %w", err)
		}
	}
}

// Clear removes the file once all its ends are known to be written. If we die before Clear, the
// next process loads the ends again and finds that the runs have ended.
func (s *Spool) Clear() error {
	failpoint.Here("before", "clear spool")
	if err := os.Remove(s.path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("spool: %w", err)
	}
	failpoint.Here("behind", "clear spool")
	return nil
}
