// Package follow keeps a cluster equal to a folder of job files, such as a checkout of a
// repository. It applies the files after each change.
//
// A node reads its folder every two seconds and compares the contents. So it does not matter how
// files change: copies, switched symlinks, and file systems without notifications all work. If two
// consecutive reads differ, the files are still being written, and the node waits.
//
// Several nodes may follow copies of one folder. MySQL holds the digest of the content that was
// applied last. job.FolderState says whether a copy is newer or older. If a copy is newer, one of
// the nodes applies it, in one transaction with the digest.
//
// An error is logged when it is new, and kept for the API. Neither an error nor a missing folder
// stops the node.
package follow
