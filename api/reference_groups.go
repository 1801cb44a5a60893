package api

import "go-crontab/api/view"

import "net/http"

var (
	listGroupsDoc = operation{
		id: "listGroups", tag: tagGroups, summary: "List groups", about: "In the order of their creation.",
		query: []parameter{limitParam, pageParam}, replies: found[view.Page[view.Group]]("A page of groups."),
	}
	getGroupDoc = operation{
		id: "getGroup", tag: tagGroups, summary: "Show a group", about: "Its slots, how many are in use, and how many " +
			"due times wait for one.",
		replies: found[view.Group]("The group."), problems: []kind{notFound},
	}
	putGroupDoc = operation{
		id: "putGroup", tag: tagGroups, unless: true, summary: "Create a group, or change its slots",
		about:   "A lower number of slots takes effect as runs end.",
		body:    &requestBody{of: of[view.Group](), about: "The group.", example: `{"slots": 2}`},
		replies: []reply{{status: http.StatusOK, about: "The current group.", of: of[view.Group]()}}, changes: true,
		problems: []kind{notFound},
	}
	deleteGroupDoc = operation{
		id: "deleteGroup", tag: tagGroups, summary: "Delete a group", about: "A group that jobs use cannot be deleted.",
		replies: gone, changes: true, problems: []kind{notFound, inUse},
	}
)
