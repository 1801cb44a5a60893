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
)

// Spool keeps outcomes of a node that must stop while MySQL is out of reach, in one file of a folder of its own.
type Spool struct {
	dir  string
	lock *os.File
}

// OpenSpool makes the folder, readable by its owner only: outcomes hold output of commands. It takes it until Close, or the
// end of the process: two nodes with one spool would remove each other's outcomes.
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
			err = errors.New("another node uses it; give each a folder of its own")
		}
		return nil, fmt.Errorf("spool: %s: %w", dir, err)
	}
	return &Spool{dir, f}, nil
}

// Close gives the folder back.
func (s *Spool) Close() {
	_ = syscall.Flock(int(s.lock.Fd()), syscall.LOCK_UN) // a command that is just being forked has the file for a moment longer
	s.lock.Close()
}

func (s *Spool) path() string { return filepath.Join(s.dir, "outcomes.jsonl") }

// Save writes what waits in a recorder and returns how much that was. It is on the disk when Save returns. It takes
// the place of what was spooled before: that was handed to the recorder and waits in it still, or is written.
func (s *Spool) Save(r *Recorder) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		return 0, nil
	}
	f, err := os.OpenFile(s.path()+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, fmt.Errorf("spool: %w", err)
	}
	defer f.Close()
	w := bufio.NewWriter(f)
	enc := json.NewEncoder(w)
	for _, o := range r.waiting {
		if err := enc.Encode(o); err != nil {
			return 0, fmt.Errorf("spool: %w", err)
		}
	}
	if err := w.Flush(); err != nil {
		return 0, fmt.Errorf("spool: %w", err)
	}
	if err := f.Sync(); err != nil {
		return 0, fmt.Errorf("spool: %w", err)
	}
	// If we die here, what was spooled before is there still.
	failpoint.Here("before", "rename spool")
	if err := os.Rename(f.Name(), s.path()); err != nil {
		return 0, fmt.Errorf("spool: %w", err)
	}
	if d, err := os.Open(s.dir); err == nil {
		d.Sync() // some file systems cannot
		d.Close()
	}
	failpoint.Here("behind", "rename spool")
	return len(r.waiting), nil
}

// Load reads what an earlier life spooled. A line that was torn by a crash, or that only another version
// understands, is left out; torn tells so.
func (s *Spool) Load() (outcomes []*Outcome, torn bool, err error) {
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
			o := new(Outcome)
			if json.Unmarshal(line, o) == nil {
				outcomes = append(outcomes, o)
			} else {
				torn = true
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return outcomes, torn, nil
		case err != nil:
			return outcomes, torn, fmt.Errorf("spool: %w", err)
		}
	}
}

// Clear removes the file once everything in it is known to be written. If we die before it, the next life finds that
// the rows are gone.
func (s *Spool) Clear() error {
	failpoint.Here("before", "clear spool")
	if err := os.Remove(s.path()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("spool: %w", err)
	}
	failpoint.Here("behind", "clear spool")
	return nil
}
