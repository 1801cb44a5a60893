package doctor

// checks lists all checks in the order of the report. Their ids are for programs and do not change.
var checks = []check{
	{"version", MySQL, "The server is new enough", version},
	{"read-only", MySQL, "The server takes writes", readOnly},
	{"redo-durability", MySQL, "Commits survive a power cut", redoDurability},
	{"binlog-durability", MySQL, "The binary log has what was committed, after a power cut too", binlogDurability},
	{"torn-pages", MySQL, "Pages survive a power cut whole", tornPages},
	{"binlog-format", MySQL, "The binary log takes READ COMMITTED transactions", binlogFormat},
	{"server-limits", MySQL, "No timeout or limit of the server is in the way", limits},
	{"connections", MySQL, "There are connections enough for all nodes", connections},
	{"replication", MySQL, "A failover loses nothing", replication},
	{"long-transactions", MySQL, "No transaction is left open", longTransactions},

	{"schema", Schema, "The tables are those of this version", schema},
	{"lock-rows", Schema, "All lock rows are there", lockRows},
	{"grants", Schema, "The user may do what a node must", rights},

	{"nodes", Cluster, "Several nodes live", nodes},
	{"duplicate-names", Cluster, "Each node has a name of its own", duplicateNames},
	{"cordons", Cluster, "Nodes take work", cordons},
	{"pauses", Cluster, "No pause was forgotten", pauses},
	{"versions", Cluster, "All nodes have the same version", versions},
	{"zone-rules", Cluster, "All nodes have the same time zone data", zoneRules},
	{"clocks", Cluster, "Clocks agree", clocks},
	{"stuck-tasks", Cluster, "No task is stuck", stuck},
	{"long-runs", Cluster, "No run has lasted for more than a day", longRuns},
	{"channels", Cluster, "Channels take the messages of alerts", channels},

	{"ulimits", Host, "The node may open files and start processes enough", openFiles},
	{"guard", Host, "A guard watches over the node", guarded},
	{"cgroup", Host, "The limits of jobs can be held", cgroups},
	{"state-folder", Host, "The state folder can be written to", stateDir},
	{"zone-data", Host, "There is time zone data", zoneData},

	{"broken-jobs", Jobs, "All definitions can be planned", broken},
	{"unplaced-jobs", Jobs, "There is a node for each job", unplaced},
	{"unrun-jobs", Jobs, "Jobs run, and succeed at times", unbegun},
	{"far-jobs", Jobs, "Jobs are due within a year", farAhead},
	{"paused-jobs", Jobs, "No paused job was forgotten", pausedLong},
	{"herds", Jobs, "Due times are spread", herds},
	{"time-zones", Jobs, "All time zones of jobs are known", zones},

	{"history-size", History, "The history is bounded", historySize},
	{"retention", History, "Records that are kept no longer go", retention},
	{"audit-chain", History, "The newest audit lines are as they were written", auditChain},
	{"restored", History, "The database is not an older one", restored},
}
