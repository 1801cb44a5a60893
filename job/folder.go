package job

import (
	"errors"
	"slices"
	"time"
)

// Folder is the folder from which a node made an Apply. The node follows this folder.
type Folder struct {
	Name   string // the same on all nodes
	Node   string // the node that read it
	Digest string // of the files, see DigestSize
}

// DigestSize is the length of digests of folders.
const DigestSize = 32

// FolderState is the cluster's record of a folder that nodes follow.
type FolderState struct {
	ID      int64
	Name    string
	Digest  string   // the applied digest; "": nothing applied yet
	Past    []string // digests applied before that, latest first
	Applied Micros
	Node    string // the node that applied it
	Nodes   []FolderNode
}

// MaxPast is the number of earlier applied digests to keep.
const MaxPast = 200

// FolderNode is the state of a node's copy of a folder.
type FolderNode struct {
	Node   string
	Alive  bool   // it has a session
	Digest string // of its files
	Held   string // the node's digest when its copy last equalled the applied state
	State  FolderWord
	Error  string // the error if it was refused
	Since  Micros // last change of state, error or digest
}

// FolderWord compares a node's folder with the applied state.
type FolderWord string

// The states of a node's folder.
const (
	FolderApplied FolderWord = "applied" // it equals the applied state
	FolderBehind  FolderWord = "behind"  // it equals an earlier applied state
	FolderRefused FolderWord = "refused" // it cannot be applied
)

// ErrBehind reports that a folder's files were applied once and have since been replaced by others.
var ErrBehind = errors.New(
	"its files were applied earlier, and another node with newer files has replaced them since")

// BehindFor is how long a folder must be behind before Verdict takes its older state as intended.
const BehindFor = 5 * time.Minute

// NodeOf returns the entry of a node. If there is none, it returns an empty entry.
func (f *FolderState) NodeOf(name string) FolderNode {
	for _, n := range f.Nodes {
		if n.Node == name {
			return n
		}
	}
	return FolderNode{Node: name}
}

// Verdict decides what to do about a node's folder. If applied is true, there is nothing to do.
// Otherwise a nil error means that the folder must be applied. The folders of several nodes do not
// change at the same instant, so a folder that differs from the applied state may be ahead or
// behind:
//
//   - A digest that was never applied is ahead.
//   - A digest that was applied before is also ahead if this folder equalled the applied state
//     until it changed: a user put the old files back.
//   - Any other folder is behind. It is applied only if old files were put back in all folders: it
//     has been behind for BehindFor, and no other living node's folder equals the applied state.
func (f *FolderState) Verdict(node, digest string, now Micros) (applied bool, err error) {
	mine := f.NodeOf(node)
	switch {
	case f.Digest == digest:
		return true, nil
	case f.Digest == "", !slices.Contains(f.Past, digest), mine.Held == f.Digest:
		return false, nil
	case mine.State != FolderBehind, mine.Digest != digest, now.Sub(mine.Since) < BehindFor:
		return false, ErrBehind
	}

	for _, n := range f.Nodes {
		if n.Node != node && n.Alive && n.Digest == f.Digest {
			return false, ErrBehind
		}
	}

	return false, nil
}

// Advance records a new applied digest.
func (f *FolderState) Advance(w *Folder, now Micros) {
	past := slices.DeleteFunc(append([]string{f.Digest}, f.Past...), func(d string) bool {
		return d == "" || d == w.Digest
	})
	f.Past = past[:min(len(past), MaxPast)]
	f.Digest, f.Applied, f.Node = w.Digest, now, w.Node
}

// The kind and the action of folders in the audit.
const (
	KindFolder  Kind   = "folder"
	ActionApply Action = "apply"
)
