package job

import (
	"errors"
	"slices"
	"time"
)

// Folder names, in an Apply, the folder whose files it has, if a node follows one.
type Folder struct {
	Name   string // the same on all nodes that follow it
	Node   string // whose folder it is
	Digest string // of what it holds, see DigestSize
}

// DigestSize is the length of digests of folders.
const DigestSize = 32

// FolderState is what a cluster knows of a folder that nodes follow.
type FolderState struct {
	ID      int64
	Name    string
	Digest  string   // of what was applied last; "": nothing yet
	Past    []string // what was applied before that, the latest first
	Applied Micros
	Node    string // which applied it
	Nodes   []FolderNode
}

// MaxPast is how many digests of what was applied earlier are kept.
const MaxPast = 200

// FolderNode is what a node's copy of a folder holds, and what became of it.
type FolderNode struct {
	Node   string
	Alive  bool   // it has a session
	Digest string // of what the folder holds
	Held   string // of what it held when that was what is applied
	State  FolderWord
	Error  string // why it was refused
	Since  Micros // when state, error or digest became these
}

// FolderWord says how a node's folder stands to what is applied.
type FolderWord string

// How a folder can stand.
const (
	FolderApplied FolderWord = "applied" // it holds what is applied
	FolderBehind  FolderWord = "behind"  // it holds what was applied before that
	FolderRefused FolderWord = "refused" // it holds what cannot be applied
)

// ErrBehind tells that a folder holds what was applied once and has been replaced since.
var ErrBehind = errors.New("it holds what was applied earlier and has been replaced since, by another node whose folder was newer")

// BehindFor is how long a folder is behind before it counts that no other one holds what is applied.
const BehindFor = 5 * time.Minute

// NodeOf returns the line of a node.
func (f *FolderState) NodeOf(name string) FolderNode {
	for _, n := range f.Nodes {
		if n.Node == name {
			return n
		}
	}
	return FolderNode{Node: name}
}

// Verdict says what is to be done about a folder that holds something, nil for applying it. Folders of several nodes do
// not change at the same instant, so one that differs from what is applied may be ahead or behind:
//
//   - What was never applied is ahead.
//   - So is what was, if the folder held what is applied before it changed: somebody went back.
//   - Else it is behind. But when it has been so for BehindFor and there is no living node whose folder holds what is
//     applied, that was taken back by everybody.
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

// Advance makes what is applied another.
func (f *FolderState) Advance(w *Folder, now Micros) {
	past := slices.DeleteFunc(append([]string{f.Digest}, f.Past...), func(d string) bool { return d == "" || d == w.Digest })
	f.Past = past[:min(len(past), MaxPast)]
	f.Digest, f.Applied, f.Node = w.Digest, now, w.Node
}

// KindFolder is the kind of folders in the audit, ActionApply what is done with them.
const (
	KindFolder  Kind   = "folder"
	ActionApply Action = "apply"
)
