package api

var (
	listGroupsDoc  = operation{id: "listGroups", query: []parameter{limitParam, pageParam}}
	getGroupDoc    = operation{id: "getGroup"}
	putGroupDoc    = operation{id: "putGroup"}
	deleteGroupDoc = operation{id: "deleteGroup"}
)
