package doctor

// checks lists all checks in the order of the report. Their ids are for programs and do not change.
var checks = []check{
	{"version", MySQL, "The server is new enough", version},
	{"read-only", MySQL, "The server accepts writes", readOnly},
	{"redo-durability", MySQL, "Commits survive a power cut", redoDurability},
	{"binlog-durability", MySQL, "The binary log survives a power cut with all commits", binlogDurability},
	{"torn-pages", MySQL, "A power cut does not damage data pages", tornPages},
	{"binlog-format", MySQL, "The binary log accepts READ COMMITTED transactions", binlogFormat},
	{"server-limits", MySQL, "The server's timeouts and limits are suitable", limits},
	{"connections", MySQL, "There are enough connections for all nodes", connections},
	{"replication", MySQL, "A failover loses no commits", replication},
	{"long-transactions", MySQL, "No transaction has been open for long", longTransactions},

	{"schema", Schema, "The tables match this version", schema},
	{"lock-rows", Schema, "All lock rows exist", lockRows},
	{"grants", Schema, "The database user has the rights that nodes need", rights},

	{"nodes", Cluster, "Several nodes are running", nodes},
	{"duplicate-names", Cluster, "Each node has its own name", duplicateNames},
	{"cordons", Cluster, "Nodes take work", cordons},
	{"pauses", Cluster, "No forgotten pause of an app or the cluster", pauses},
	{"versions", Cluster, "All nodes have the same version", versions},
	{"zone-rules", Cluster, "All nodes have the same time zone data", zoneRules},
	{"clocks", Cluster, "The clocks agree", clocks},
	{"stuck-tasks", Cluster, "No run is stuck", stuck},
	{"long-runs", Cluster, "No run has lasted more than a day", longRuns},
	{"folders", Cluster, "Folders of job files are applied", folders},
	{"alerting", Cluster, "Alerts are sent to someone", alerting},
	{"channels", Cluster, "Alert channels accept messages", channels},
	{"expiring", Cluster, "No token or certificate expires soon", expiring},
	{"backup", Cluster, "The next backup is not overdue", backup},
	{"oidc", Cluster, "Nodes reach the OIDC issuer", provider},

	{"ulimits", Host, "The node may open enough files and start enough processes", openFiles},
	{"guard", Host, "The node has a guard", guarded},
	{"cgroup", Host, "The node can enforce the limits of jobs", cgroups},
	{"state-folder", Host, "The state folder is writable", stateDir},
	{"zone-data", Host, "The machine has time zone data", zoneData},

	{"broken-jobs", Jobs, "All job definitions have due times", broken},
	{"unplaced-jobs", Jobs, "Each job has a matching node", unplaced},
	{"unrun-jobs", Jobs, "Jobs run and succeed", unbegun},
	{"far-jobs", Jobs, "Jobs are due within a year", farAhead},
	{"paused-jobs", Jobs, "No forgotten pause of a job", pausedLong},
	{"herds", Jobs, "Due times are spread out", herds},
	{"time-zones", Jobs, "All time zones of jobs can be loaded", zones},

	{"history-size", History, "The history has a limited size", historySize},
	{"retention", History, "Expired records are removed", retention},
	{"audit-chain", History, "The newest audit lines are unchanged", auditChain},
	{"restored", History, "The database was not restored from a backup", restored},
}
