package doctor

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go-crontab/sql"
)

// promise begins each explanation of lost commits.
const promise = "Nodes know from MySQL's commits which due times have started. "

func version(x *exam) error {
	if err := sql.CheckVersion(x.version); err != nil {
		x.found(Error, Finding{
			Seen: "the server is " + x.version,
			Why:  "Nodes refuse to join: their statements need features of later versions.",
			Fix:  "Upgrade the server to MySQL 8.0 or MariaDB 10.6, or newer.",
		})
	}
	return nil
}

func redoDurability(x *exam) error {
	if v := x.vars["innodb_flush_log_at_trx_commit"]; v != "1" {
		x.found(Error, Finding{
			Seen: "innodb_flush_log_at_trx_commit is " + v,
			Why: promise + "With this setting, a power cut or a crash of the machine loses up to " +
				"a second of commits, and runs that had started are started again.",
			Fix: x.keep("innodb_flush_log_at_trx_commit", "1"),
			SQL: []string{x.set("innodb_flush_log_at_trx_commit", "1")},
		})
	}
	return nil
}

func binlogDurability(x *exam) error {
	if v := x.vars["sync_binlog"]; x.on("log_bin") && v != "1" {
		x.found(Error, Finding{
			Seen: "the binary log is on, and sync_binlog is " + v,
			Why: promise + "After a power cut, the binary log may lack commits that the tables have. Replicas and " +
				"restored data then lack them too, and after a failover runs are started again.",
			Fix: x.keep("sync_binlog", "1"),
			SQL: []string{x.set("sync_binlog", "1")},
		})
	}
	return nil
}

func tornPages(x *exam) error {
	// Like OFF, DETECT_ONLY writes no copy of a page.
	if v, ok := x.vars["innodb_doublewrite"]; ok && (sql.IsOff(v) || strings.EqualFold(v, "DETECT_ONLY")) {
		x.found(Warning, Finding{
			Code: NoDoublewrite,
			Seen: "innodb_doublewrite is " + strings.ToLower(v),
			Why: "A power cut while a page is written damages it, and InnoDB may not start again. " +
				"Only file systems that write whole pages, such as ZFS, do not need this setting.",
			Fix: "Write innodb_doublewrite = ON below [mysqld] in the server's configuration, and restart the server.",
		})
	}

	for name, why := range map[string]string{
		"innodb_checksum_algorithm": "Data pages have no checksums, so damage by the disk goes unnoticed.",
	} {
		if strings.EqualFold(x.vars[name], "none") {
			x.found(Warning, Finding{
				Code: NoChecksums,
				Seen: name + " is none",
				Why:  why,
				Fix:  x.keep(name, "crc32"),
				SQL:  []string{x.set(name, "crc32")},
			})
		}
	}

	return nil
}

func binlogFormat(x *exam) error {
	if x.on("log_bin") && strings.EqualFold(x.vars["binlog_format"], "STATEMENT") {
		x.found(Error, Finding{
			Seen: "binlog_format is STATEMENT",
			Why: "All transactions are READ COMMITTED, which InnoDB rejects with this format " +
				"(error 1665). No node can claim or start runs.",
			Fix: x.keep("binlog_format", "ROW"),
			SQL: []string{x.set("binlog_format", "'ROW'")},
		})
	}
	return nil
}

func readOnly(x *exam) error {
	if v, there := x.vars["innodb_read_only"]; there && !sql.IsOff(v) {
		x.found(Error, Finding{
			Code: InnoDBReadOnly,
			Seen: "innodb_read_only is " + strings.ToLower(v),
			Why:  "InnoDB rejects writes, and no statement can change that while the server runs.",
			Fix: "Point GOCRONTAB_DSN at the primary. If this server is to be the primary, " +
				"remove the line from its configuration and restart it.",
		})
		return nil
	}

	for _, name := range []string{"super_read_only", "read_only"} {
		if v, there := x.vars[name]; there && !sql.IsOff(v) { // MariaDB 12 has further values for on
			x.found(Error, Finding{
				Code: ServerReadOnly,
				Seen: name + " is " + strings.ToLower(v),
				Why: "The server rejects writes: it is a replica, or a failover is in progress. " +
					"New nodes wait to join, and running nodes start no runs.",
				Fix: "Point GOCRONTAB_DSN at the primary. If this server is to be the primary, run the statement.",
				SQL: []string{"SET GLOBAL read_only = OFF"}, // MySQL then clears super_read_only, too
			})
			return nil
		}
	}

	if n, _ := x.number("innodb_force_recovery"); n > 0 {
		x.found(Error, Finding{
			Code: ForcedRecovery,
			Seen: fmt.Sprintf("innodb_force_recovery is %d", n),
			Why:  "InnoDB runs in recovery mode: it rejects writes, or does not recover them after a crash.",
			Fix: "Back up the data, repair the server, " +
				"remove the line from its configuration and restart it.",
		})
	}

	return nil
}

func limits(x *exam) error {
	if n, ok := x.number("max_allowed_packet"); ok && n < sql.MinPacket {
		x.found(Error, Finding{
			Code: SmallPacket,
			Seen: fmt.Sprintf("max_allowed_packet is %d bytes", n),
			Why:  "Nodes refuse to join: they write output in batches of several megabytes.",
			Fix:  x.keep("max_allowed_packet", "67108864"),
			SQL:  []string{x.set("max_allowed_packet", "67108864")},
		})
	}

	for _, name := range []string{
		"idle_transaction_timeout", "idle_write_transaction_timeout", "idle_readonly_transaction_timeout",
	} {
		if n, ok := x.number(name); ok && n > 0 && n < 5 {
			x.found(Warning, Finding{
				Code: IdleCut,
				Seen: fmt.Sprintf("%s is %d s", name, n),
				Why: "The server ends transactions that are idle for longer, even if the node's machine was only " +
					"slow for a moment.",
				Fix: x.keep(name, "0"),
				SQL: []string{x.set(name, "0")},
			})
		}
	}

	if strings.EqualFold(x.vars["innodb_deadlock_detect"], "OFF") {
		x.found(Warning, Finding{
			Code: DeadlocksUndetected,
			Seen: "innodb_deadlock_detect is off",
			Why: "Two transactions that wait for each other end only at a timeout, " +
				"so runs start seconds late.",
			Fix: x.keep("innodb_deadlock_detect", "ON"),
			SQL: []string{x.set("innodb_deadlock_detect", "ON")},
		})
	}

	return nil
}

// connectionsOfNode is the most connections of a node: three pools of 8, 8 and 3, and one
// connection for its beats. When the node is dead, its guard opens one connection.
const connectionsOfNode = 20

func connections(x *exam) error {
	most, ok := x.number("max_connections")
	if !ok {
		return skip("the server does not report max_connections")
	}

	nodes := int64(max(1, len(x.sessions)))
	if need := nodes*connectionsOfNode + 10; need > most {
		x.found(Warning, Finding{
			Code: TooFewConnections,
			Seen: fmt.Sprintf("max_connections is %d; %d nodes may use %d", most, nodes, nodes*connectionsOfNode),
			Why:  "When the server has no connection left, nodes cannot begin transactions, and runs start late.",
			Fix:  x.keep("max_connections", strconv.FormatInt(max(2*need, 151), 10)),
			SQL:  []string{x.set("max_connections", strconv.FormatInt(max(2*need, 151), 10))},
		})
	} else if used, err := strconv.ParseInt(x.counters["max_used_connections"], 10, 64); err == nil && used >= most {
		x.found(Warning, Finding{
			Code: ConnectionsRanOut,
			Seen: fmt.Sprintf("all %d connections were in use at least once since the server started", most),
			Why:  "When the server has no connection left, nodes cannot begin transactions, and runs start late.",
			Fix:  x.keep("max_connections", strconv.FormatInt(2*most, 10)),
			SQL:  []string{x.set("max_connections", strconv.FormatInt(2*most, 10)), "FLUSH STATUS"},
		})
	}

	return nil
}

func replication(x *exam) error {
	if x.on("wsrep_on") {
		if status := x.counters["wsrep_cluster_status"]; status != "" && !strings.EqualFold(status, "Primary") {
			x.found(Error, Finding{
				Code: GaleraNotPrimary,
				Seen: "this Galera member is " + status,
				Why:  "It is cut off from the majority and rejects writes.",
				Fix:  "Connect to a member of the primary component, or bring the other members back.",
			})
		}
		if size, _ := strconv.Atoi(x.counters["wsrep_cluster_size"]); size > 1 {
			x.found(Notice, Finding{
				Code: Galera,
				Seen: fmt.Sprintf("the server is a Galera cluster with %d members", size),
				Why: "Nodes that write through different members are safe, but conflict on the same rows: " +
					"the later transaction is rejected and retried. " +
					"A pause of an app may miss a start that is in progress on another member.",
				Fix: "List the members in the same order in the DSN of each node, " +
					"as in tcp(db1:3306,db2:3306,db3:3306). All nodes then use the first available member.",
			})
		}
		return nil
	}

	if name := x.vars["group_replication_group_name"]; name != "" &&
		strings.EqualFold(x.vars["group_replication_single_primary_mode"], "OFF") {
		x.found(Warning, Finding{
			Code: SeveralPrimaries,
			Seen: "the server uses Group Replication with several primaries",
			Why:  "go-crontab has only been tested with a single primary.",
			Fix:  "Switch the group to a single primary.",
			SQL:  []string{"SELECT group_replication_switch_to_single_primary_mode()"},
		})
	}

	semi := ""
	for _, prefix := range []string{"rpl_semi_sync_master", "rpl_semi_sync_source"} {
		if x.on(prefix + "_enabled") {
			semi = prefix
			x.semiSync(prefix)
		}
	}

	if semi != "" || !x.on("log_bin") {
		return nil
	}

	n, err := x.replicas()
	if n > 0 {
		fix, statements := x.makeSemiSync()
		x.found(Notice, Finding{
			Code: AsynchronousReplicas,
			Seen: fmt.Sprintf("replicas (%d) receive commits only after MySQL has confirmed them", n),
			Why: "If the primary is lost and a replica replaces it, the replica may lack the last commits: " +
				"their due times are started twice or lost.",
			Fix: fix + " Or accept the risk: docs/engines.md says what may repeat.",
			SQL: statements,
		})
	}

	return err
}

// semiSync checks the setup of a primary whose commits should wait until a replica has them.
func (x *exam) semiSync(prefix string) {
	if strings.EqualFold(x.vars[prefix+"_wait_point"], "AFTER_COMMIT") {
		x.found(Notice, Finding{
			Code: WaitsAfterCommit,
			Seen: prefix + "_wait_point is AFTER_COMMIT",
			Why: "Other sessions see a commit before a replica has it. " +
				"After a failover, later changes can exist without the commit that they relied on.",
			Fix: x.keep(prefix+"_wait_point", "AFTER_SYNC"),
			SQL: []string{x.set(prefix+"_wait_point", "'AFTER_SYNC'")},
		})
	}

	status, clients := x.counters[prefix+"_status"], x.counters[prefix+"_clients"]
	if strings.EqualFold(status, "OFF") || clients == "0" {
		x.found(Warning, Finding{
			Code: SemiSyncOff,
			Seen: fmt.Sprintf("%s_enabled is ON, but has no effect: %s_status is %s, %s_clients is %s",
				prefix, prefix, status, prefix, clients),
			Why: "MySQL confirms commits before a replica has them. If the primary is lost, " +
				"due times in the last commits are started twice or lost.",
			Fix: "Check each replica: it must replicate, have semi-synchronous replication on, " +
				"and have reconnected since then (STOP and START its IO_THREAD). " +
				"If there are no replicas any more, turn the setting off here.",
		})
	}
}

// replicas returns the number of connected replicas. MariaDB has a counter for it.
func (x *exam) replicas() (int, error) {
	if x.maria {
		n, _ := strconv.Atoi(x.counters["slaves_connected"])
		return n, nil
	}
	n, err := binlogReaders(x.db.Reader(x.ctx))
	if sql.IsDenied(err) {
		err = skip("the database user cannot see replicas; GRANT PROCESS ON *.* to it")
	}
	return n, err
}

// makeSemiSync describes how to make replication semi-synchronous. It returns the statements in
// the right order: replicas first. If a primary waits before its replicas can answer, it stops all
// commits until its timeout.
func (x *exam) makeSemiSync() (fix string, statements []string) {
	primary, replica, io := "master", "slave", "SLAVE"
	if !x.maria && !x.older(8, 0, 26) {
		primary, replica, io = "source", "replica", "REPLICA"
	}

	on := func(side string) string { return x.set("rpl_semi_sync_"+side+"_enabled", "ON") }
	const first, each = " /* on the primary; does nothing yet */", " /* on each replica */"
	last := " /* on the primary, when Rpl_semi_sync_" + replica + "_status is ON on each replica */"
	if !x.maria {
		plugin := func(side string) string {
			return fmt.Sprintf("INSTALL PLUGIN rpl_semi_sync_%s SONAME 'semisync_%s.so'", side, side)
		}
		if _, is := x.vars["rpl_semi_sync_master_enabled"]; is { // later versions may have it, too
			primary = "master"
		} else if _, is := x.vars["rpl_semi_sync_source_enabled"]; !is {
			statements = append(statements, plugin(primary)+first)
		}
		statements = append(statements, plugin(replica)+each)
	}

	statements = append(statements,
		on(replica)+each, "STOP "+io+" IO_THREAD"+each, "START "+io+" IO_THREAD"+each, on(primary)+last)
	fix = "Make replication semi-synchronous, so that MySQL confirms a commit once a replica has it. " +
		"Run each statement on its server, the replicas first and the primary last. " +
		"In the other order all commits stop for ten seconds."
	if x.maria {
		fix += " Write the settings below [mysqld] in the servers' configurations, " +
			"so that they survive a restart."
	}

	return fix, statements
}

// older reports whether a MySQL server is older than a version.
func (x *exam) older(major, minor, patch int) bool {
	var is [3]int
	_, _ = fmt.Sscanf(x.version, "%d.%d.%d", &is[0], &is[1], &is[2]) // an unknown format counts as old
	return slices.Compare(is[:], []int{major, minor, patch}) < 0
}

func longTransactions(x *exam) error {
	list, all, err := readTransactions(x.ctx, x.db.SQL(), 60)
	if err != nil {
		if sql.IsDenied(err) {
			return skip("the database user cannot see transactions; GRANT PROCESS ON *.* to it")
		}
		return err
	}

	for _, t := range list {
		what := fmt.Sprintf("a transaction of %s has been open for %d s and has locked %d rows",
			t.User, t.Seconds, t.Locked)
		severity := Notice
		if t.Locked > 0 {
			severity = Warning
		}
		x.found(severity, Finding{
			Seen: what,
			Why: "Nodes cannot change the rows that it has locked. As long as it is open, " +
				"MySQL cannot purge old row versions, and all statements become slower.",
			Fix: "End it in the client that opened it. The statement disconnects a forgotten client.",
			SQL: []string{fmt.Sprintf("KILL %d", t.Thread)},
		})
	}

	if !all {
		return skip("MySQL could not list read-only transactions at this moment; try again")
	}

	return nil
}
