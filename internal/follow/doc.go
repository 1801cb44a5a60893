// Package follow has a cluster follow a folder with files of jobs, as somebody keeps them in a repository: what the
// files have is applied when it becomes another.
//
// A node looks at its folder every other second, and goes by what it reads: copies that others put there, links that are
// turned, and file systems that tell nobody of changes are all the same to it. What differs between two looks is still
// being written, and waited for.
//
// Several nodes may follow copies of one folder. MySQL has the digest of what was applied last, and job.FolderState
// says which copies are ahead of that and which behind; what is ahead is applied by one of them, in one transaction
// with the digest. An error is told in the log when it is new, and kept for the API; it never ends the node, and neither
// does a folder that is gone.
package follow
