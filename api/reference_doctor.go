package api

import "go-crontab/api/view"

var doctorDoc = operation{
	id: "examineCluster", tag: tagCluster, summary: "Look for what would break the promise",
	about: "Settings of MySQL, rights, the schema, nodes, the machine of the node that answers, jobs, and the size " +
		"of the history: what is not as it should be, why that matters, and how it is mended. " +
		"It changes nothing and takes no lock, and may take some seconds on a large cluster. `docs/doctor.md` has " +
		"all checks.",
	replies: found[view.Doctor]("What was found."),
}
