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

// MaxSize bounds the total size of the files, in bytes. It is the server's limit for a request.
const MaxSize = 16 << 20

// MaxSizeInParts bounds the total size of files that are applied in parts, in bytes.
const MaxSizeInParts = 1 << 30

// extensions are the file name endings that are read in a folder.
var extensions = []string{".yaml", ".yml", ".json"}

// ErrNothing means that there are no files, or only empty ones. A file with an empty list is not
// empty: it says explicitly that there should be no job.
var ErrNothing = errors.New("is empty")

// ReadAll reads files, folders and, as "-", standard input.
//
// In a folder it reads all .yaml, .yml and .json files, including subfolders, sorted by name. It
// skips names that begin with a dot. It follows links to targets within the folder. If a folder
// has several names, it is read only once. An empty file is an error, because pruning deletes jobs
// that are in no file.
func ReadAll(paths []string, stdin io.Reader) (*Set, error) { return ReadUpTo(MaxSize, paths, stdin) }

// ReadUpTo is like ReadAll, with the total size limited to most bytes.
func ReadUpTo(most int, paths []string, stdin io.Reader) (*Set, error) {
	r := &filesReader{set: &Set{}, most: most}
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

// shown returns the name of a path in messages.
func shown(p string) string {
	if p == "-" {
		return "standard input"
	}
	return p
}

type filesReader struct {
	set    *Set
	size   int // total bytes read
	most   int
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

// folder reads the files of a folder. root refuses links that lead outside, even if the links
// change while we read.
func (r *filesReader) folder(dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()

	w := &walker{root: root, dir: dir}
	if err := w.walk("."); err != nil {
		return err
	}

	for len(w.links) > 0 {
		link := w.links[0]
		w.links = w.links[1:]
		if err := w.walk(link); err != nil {
			return err
		}
	}

	slices.Sort(w.files)
	for _, name := range w.files {
		if err := r.inFolder(root, dir, name); err != nil {
			return err
		}
	}

	return nil
}

// walker finds the files of a folder. Its names are relative to the root.
type walker struct {
	root    *os.Root
	dir     string
	files   []string
	links   []string      // to folders
	folders []fs.FileInfo // folders already listed
}

// walk lists a folder and its subfolders. Links wait until the folders are listed, so that each
// folder is listed under its own name first. No folder is listed twice, so cycles of links end.
func (w *walker) walk(name string) error {
	info, err := w.root.Stat(filepath.FromSlash(name))
	if err != nil {
		return err
	}
	if slices.ContainsFunc(w.folders, func(f fs.FileInfo) bool { return os.SameFile(f, info) }) {
		return nil
	}

	w.folders = append(w.folders, info)
	entries, err := fs.ReadDir(w.root.FS(), name)
	if err != nil {
		return err
	}

	for _, e := range entries {
		child := path.Join(name, e.Name())
		folder := false
		switch {
		case strings.HasPrefix(e.Name(), "."):
			continue
		case e.IsDir():
			if err := w.walk(child); err != nil {
				return err
			}
			continue
		case e.Type()&fs.ModeSymlink != 0:
			if folder, err = w.toFolder(child); err != nil {
				return err
			}
		}

		switch {
		case folder:
			w.links = append(w.links, child)
		case slices.Contains(extensions, path.Ext(child)):
			w.files = append(w.files, child)
		}
	}

	return nil
}

// toFolder reports whether a link leads to a folder. A link that cannot be resolved is an error.
// If it were skipped, all jobs in its folder would count as deleted.
func (w *walker) toFolder(link string) (bool, error) {
	info, err := w.root.Stat(filepath.FromSlash(link))
	if err == nil {
		return info.IsDir(), nil
	}
	full := filepath.Join(w.dir, filepath.FromSlash(link))
	if info, outside := os.Stat(full); slices.Contains(extensions, path.Ext(link)) || outside == nil && !info.IsDir() {
		return false, nil // a file: it is skipped, or reading it reports the problem
	}
	return false, fmt.Errorf("%s: %w", full, err)
}

func (r *filesReader) inFolder(root *os.Root, dir, name string) error {
	file := filepath.Join(dir, filepath.FromSlash(name))

	// Check before opening, too: opening a pipe would block until there is a writer.
	if info, err := root.Stat(filepath.FromSlash(name)); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s: is not a regular file", file)
	}

	f, err := root.Open(filepath.FromSlash(name))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	defer f.Close()

	if info, err := f.Stat(); err != nil {
		return err
	} else if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: is not a regular file", file)
	}

	given, faults := r.set.given, len(r.faults)
	if err := r.read(file, f); err != nil {
		return err
	}
	if r.set.given == given && len(r.faults) == faults {
		r.faults = append(r.faults, Fault{
			Place{File: file}, "is empty; write jobs: [] to have no jobs",
		})
	}

	return nil
}

// read adds a file. It collects the faults of all files.
func (r *filesReader) read(file string, from io.Reader) error {
	text, err := io.ReadAll(io.LimitReader(from, int64(r.most-r.size)+1))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}

	if r.size += len(text); r.size > r.most {
		return fmt.Errorf("%s: the files have more than %d MiB together, which is the limit", file,
			r.most>>20)
	}

	err = r.set.Read(file, text)
	var faults Faults
	if errors.As(err, &faults) {
		r.faults = append(r.faults, faults...)
		return nil
	}
	return err
}
