package manifest

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// MaxSize bounds what files may have together, in bytes: what the server takes at once.
const MaxSize = 16 << 20

// extensions are those of the files of a folder that are read.
var extensions = []string{".yaml", ".yml", ".json"}

// ErrNothing tells that there is no file, or nothing in any. A file that has an empty list is not nothing: who means to
// have no job says so.
var ErrNothing = errors.New("there is nothing in it")

// ReadAll reads files, folders and, as "-", standard input.
//
// Of a folder all files are read that end in .yaml, .yml or .json, those of its folders included, in the order of their
// names. What begins with a dot is left out. A link is followed within the folder, but not out of it.
func ReadAll(paths []string, stdin io.Reader) (*Set, error) {
	r := &filesReader{set: &Set{}}
	for _, p := range paths {
		before := r.set.given
		if err := r.path(p, stdin); err != nil {
			return nil, err
		}
		if r.set.given == before && r.faults == nil {
			return nil, fmt.Errorf("%s: %w", shown(p), ErrNothing)
		}
	}
	if r.faults != nil {
		return nil, r.faults
	}
	return r.set, r.set.Check()
}

// shown is what messages call a path.
func shown(p string) string {
	if p == "-" {
		return "standard input"
	}
	return p
}

type filesReader struct {
	set    *Set
	size   int
	faults Faults
}

func (r *filesReader) path(p string, stdin io.Reader) error {
	if p == "-" {
		return r.read(shown(p), stdin)
	}
	info, err := os.Stat(p)
	if err != nil {
		return err
	}
	if info.IsDir() {
		return r.folder(p)
	}
	f, err := os.Open(p)
	if err != nil {
		return err
	}
	defer f.Close()
	return r.read(p, f)
}

// folder reads the files of a folder. The root keeps links from leading out of it, whoever changes them meanwhile.
func (r *filesReader) folder(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	var names []string
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case name == ".":
		case strings.HasPrefix(path.Base(name), "."):
			if d.IsDir() {
				return fs.SkipDir
			}
		case !d.IsDir() && slices.Contains(extensions, path.Ext(name)):
			names = append(names, name)
		}
		return nil
	})
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		if err := r.inFolder(root, dir, name); err != nil {
			return err
		}
	}
	return nil
}

func (r *filesReader) inFolder(root *os.Root, dir, name string) error {
	file := filepath.Join(dir, filepath.FromSlash(name))
	// Before it is opened, too: that of a pipe waits for somebody who writes.
	if info, err := root.Stat(filepath.FromSlash(name)); err == nil && !info.IsDir() && !info.Mode().IsRegular() {
		return fmt.Errorf("%s: is no regular file", file)
	}
	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return err
	case info.IsDir(): // a link to one; what is in it has a name of its own
		return nil
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s: is no regular file", file)
	}
	return r.read(file, f)
}

// read adds a file. What is wrong in it is told with what is wrong in the others.
func (r *filesReader) read(file string, from io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(from, int64(MaxSize-r.size)+1))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if r.size += len(text); r.size > MaxSize {
		return fmt.Errorf("%s: the files have more than %d MiB together, which is more than is taken at once", file, MaxSize>>20)
	}
	err = r.set.Read(file, text)
	var faults Faults
	if errors.As(err, &faults) {
		r.faults = append(r.faults, faults...)
		return nil
	}
	return err
}
