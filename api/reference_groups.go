package api

import "go-crontab/api/view"

import "net/http"

var (
	listGroupsDoc = operation{
		id: "listGroups", tag: tagGroups, summary: "List groups", about: "In the order of their creation.",
		query: []parameter{limitParam, pageParam}, replies: found[view.Page[view.Group]]("A page of groups."),
	}
	getGroupDoc = operation{
		id: "getGroup", tag: tagGroups, summary: "Show a group", about: "Its slots, its rate, the slots and starts in " +
			"use, and the number of due times that wait.",
		replies: found[view.Group]("The group."), problems: []kind{notFound},
	}
	putGroupDoc = operation{
		id: "putGroup", tag: tagGroups, unless: true, summary: "Create a group, or change what it allows",
		about:   "Give slots, a rate, or both; what is left out is no limit. A lower number of slots takes effect as runs end.",
		body:    &requestBody{of: of[view.Group](), about: "The group.", example: `{"slots": 2, "rate": "10/1m"}`},
		replies: []reply{{status: http.StatusOK, about: "The current group.", of: of[view.Group]()}}, changes: true,
		problems: []kind{notFound},
	}
	deleteGroupDoc = operation{
		id: "deleteGroup", tag: tagGroups, summary: "Delete a group", about: "A group that jobs use cannot be deleted.",
		replies: gone, changes: true, problems: []kind{notFound, inUse},
	}
)
