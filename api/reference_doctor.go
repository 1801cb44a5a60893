package api

import "go-crontab/api/view"

var doctorDoc = operation{
	id: "examineCluster", tag: tagCluster, summary: "Check the health of the cluster",
	about: "Checks settings of MySQL, rights, the schema, nodes, the machine of the answering node, jobs, and the size " +
		"of the history. Each finding says what is wrong, why that matters, and how to fix it. " +
		"The checks change nothing and take no locks. On a large cluster they may need some seconds. `docs/doctor.md` " +
		"lists " +
		"all checks.",
	replies: found[view.Doctor]("The findings."),
}
