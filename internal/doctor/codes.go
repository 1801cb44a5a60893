package doctor

// Code names the finding of a check that can find several things. Codes are for programs and do
// not change.
type Code string

// The codes.
const (
	InnoDBReadOnly       Code = "innodb_read_only"
	ServerReadOnly       Code = "server_read_only"
	ForcedRecovery       Code = "forced_recovery"
	NoDoublewrite        Code = "no_doublewrite"
	NoChecksums          Code = "no_checksums"
	SmallPacket          Code = "small_packet"
	IdleCut              Code = "idle_cut"
	DeadlocksUndetected  Code = "deadlocks_undetected"
	TooFewConnections    Code = "too_few_connections"
	ConnectionsRanOut    Code = "connections_ran_out"
	GaleraNotPrimary     Code = "galera_not_primary"
	Galera               Code = "galera"
	SeveralPrimaries     Code = "several_primaries"
	AsynchronousReplicas Code = "asynchronous_replicas"
	WaitsAfterCommit     Code = "waits_after_commit"
	SemiSyncOff          Code = "semi_sync_off"
	NoTables             Code = "no_tables"
	SchemaOlder          Code = "schema_older"
	SchemaNewerUsable    Code = "schema_newer_usable"
	SchemaNewer          Code = "schema_newer"
	TablesDiffer         Code = "tables_differ"
	NoNode               Code = "no_node"
	OnlyNode             Code = "only_node"
	NodeSilent           Code = "node_silent"
	NodeCordoned         Code = "node_cordoned"
	AllCordoned          Code = "all_cordoned"
	NodeClock            Code = "node_clock"
	MySQLClock           Code = "mysql_clock"
	RunsOrphaned         Code = "runs_orphaned"
	RunsUnclaimed        Code = "runs_unclaimed"
	RunsUnstarted        Code = "runs_unstarted"
	RunsStalled          Code = "runs_stalled"
	NeverRuns            Code = "never_runs"
	AlwaysFails          Code = "always_fails"
	RuleUnreadable       Code = "rule_unreadable"
	ArchiveFails         Code = "archive_fails"
	NobodyRemoves        Code = "nobody_removes"
	ChainBroken          Code = "chain_broken"
	LinesUnchained       Code = "lines_unchained"
	LineInserted         Code = "line_inserted"
	LinesTooOld          Code = "lines_too_old"
	FewFiles             Code = "few_files"
	FewProcesses         Code = "few_processes"
	NoStateFolder        Code = "no_state_folder"
	StateFolderReadOnly  Code = "state_folder_read_only"
	StateFolderFull      Code = "state_folder_full"
)

// codes lists all codes in the order of their checks. If a check can find only one thing, it has
// no code.
var codes = []struct {
	check string
	code  Code
}{
	{"read-only", InnoDBReadOnly},
	{"read-only", ServerReadOnly},
	{"read-only", ForcedRecovery},
	{"torn-pages", NoDoublewrite},
	{"torn-pages", NoChecksums},
	{"server-limits", SmallPacket},
	{"server-limits", IdleCut},
	{"server-limits", DeadlocksUndetected},
	{"connections", TooFewConnections},
	{"connections", ConnectionsRanOut},
	{"replication", GaleraNotPrimary},
	{"replication", Galera},
	{"replication", SeveralPrimaries},
	{"replication", AsynchronousReplicas},
	{"replication", WaitsAfterCommit},
	{"replication", SemiSyncOff},
	{"schema", NoTables},
	{"schema", SchemaOlder},
	{"schema", SchemaNewerUsable},
	{"schema", SchemaNewer},
	{"schema", TablesDiffer},
	{"nodes", NoNode},
	{"nodes", OnlyNode},
	{"nodes", NodeSilent},
	{"cordons", NodeCordoned},
	{"cordons", AllCordoned},
	{"clocks", NodeClock},
	{"clocks", MySQLClock},
	{"stuck-tasks", RunsOrphaned},
	{"stuck-tasks", RunsUnclaimed},
	{"stuck-tasks", RunsUnstarted},
	{"stuck-tasks", RunsStalled},
	{"unrun-jobs", NeverRuns},
	{"unrun-jobs", AlwaysFails},
	{"retention", RuleUnreadable},
	{"retention", ArchiveFails},
	{"retention", NobodyRemoves},
	{"audit-chain", ChainBroken},
	{"audit-chain", LinesUnchained},
	{"audit-chain", LineInserted},
	{"audit-chain", LinesTooOld},
	{"ulimits", FewFiles},
	{"ulimits", FewProcesses},
	{"state-folder", NoStateFolder},
	{"state-folder", StateFolderReadOnly},
	{"state-folder", StateFolderFull},
}
