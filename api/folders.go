package api

import (
	"context"

	"go-crontab/api/view"
	"go-crontab/schedule/edit"
)

// folders lists the folders that nodes follow.
func (s *Server) folders(ctx context.Context) ([]*view.Folder, error) {
	found, err := edit.Folders(s.cfg.DB.Reader(ctx), "")

	views := []*view.Folder{}
	for _, f := range found {
		v := &view.Folder{Folder: f.Name, Digest: f.Digest, Node: f.Node, Nodes: []*view.FolderNode{}}
		if f.Applied != 0 {
			v.Applied = instant(f.Applied)
		}

		for _, n := range f.Nodes {
			v.Nodes = append(v.Nodes, &view.FolderNode{
				Node: n.Node, State: n.State, Digest: n.Digest, Error: n.Error, Since: n.Since.Time(),
			})
		}

		views = append(views, v)
	}

	return views, err
}
