package api

import (
	"context"

	"go-crontab/job"
	"go-crontab/schedule/edit"
)

// folderView is a folder of job files that nodes follow.
type folderView struct {
	Folder  string            `json:"folder" doc:"Its path, which is the same on all nodes that follow it."`
	Digest  string            `json:"digest,omitempty" doc:"The digest of the state that was last applied. Absent before the first apply."`
	Applied string            `json:"applied,omitempty" format:"date-time" doc:"When it was applied."`
	Node    string            `json:"node,omitempty" doc:"The node that applied it."`
	Nodes   []*folderNodeView `json:"nodes" doc:"The nodes that follow it now or did so in the last day."`
}

type folderNodeView struct {
	Node   string         `json:"node" doc:"Its name."`
	State  job.FolderWord `json:"state" doc:"How its folder compares to the applied state."`
	Digest string         `json:"digest,omitempty" doc:"The digest of its folder. Absent if the folder cannot be read."`
	Error  string         `json:"error,omitempty" doc:"Why its folder was refused, with the places in the files."`
	Since  string         `json:"since" format:"date-time" doc:"When this state began."`
}

// folders lists the folders that nodes follow.
func (s *Server) folders(ctx context.Context) ([]*folderView, error) {
	found, err := edit.Folders(s.cfg.DB.Reader(ctx), "")

	views := []*folderView{}
	for _, f := range found {
		v := &folderView{Folder: f.Name, Digest: f.Digest, Node: f.Node, Nodes: []*folderNodeView{}}
		if f.Applied != 0 {
			v.Applied = stamp(f.Applied)
		}

		for _, n := range f.Nodes {
			v.Nodes = append(v.Nodes, &folderNodeView{
				Node: n.Node, State: n.State, Digest: n.Digest, Error: n.Error, Since: stamp(n.Since),
			})
		}

		views = append(views, v)
	}

	return views, err
}
