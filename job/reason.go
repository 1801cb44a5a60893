package job

import "errors"

// Reason says why a run ended as it did. The zero value means that the outcome says everything.
type Reason struct {
	Code ReasonCode // for programs; "" with a text: nothing went wrong, as in "HTTP 200 OK"
	Text string     // for people, one line
}

func (r Reason) String() string { return r.Text }

// ReasonCode names a reason. A code never changes its meaning, whatever becomes of the text beside it. docs/jobs.md has a
// table of all codes. MySQL keeps at most 32 characters.
type ReasonCode string

// Why a command did not succeed, or what it left behind.
const (
	ReasonExitCode        ReasonCode = "exit_code"         // it ended with an exit code that does not count as success
	ReasonExitCodeUnknown ReasonCode = "exit_code_unknown" // it ended, and its exit code could not be read
	ReasonSignal          ReasonCode = "signal"            // a signal ended it that no node sent
	ReasonMemoryLimit     ReasonCode = "memory_limit"      // it used more memory than limits.memory
	ReasonMachineMemory   ReasonCode = "machine_memory"    // its machine had no memory left
	ReasonCPULimit        ReasonCode = "cpu_limit"         // it used more processor time than limits.cpu_seconds
	ReasonFileSizeLimit   ReasonCode = "file_size_limit"   // it wrote a larger file than limits.file_size
	ReasonPIDsLimit       ReasonCode = "pids_limit"        // it ended well, but was refused processes by limits.pids
	ReasonProcessesEnded  ReasonCode = "processes_ended"   // it ended well, but its background processes had to be ended
	ReasonProcessesKilled ReasonCode = "processes_killed"  // it ended well, but processes outside its group had to be killed
	ReasonOutputHeld      ReasonCode = "output_held"       // it ended well, but a background process still holds its output
)

// Why a request did not succeed.
const (
	ReasonHTTPStatus      ReasonCode = "http_status"      // the status of the answer is not an expected one
	ReasonNoConnection    ReasonCode = "no_connection"    // there was no connection, so nothing was sent
	ReasonAddressRefused  ReasonCode = "address_refused"  // the node may not connect to that address
	ReasonNoAnswer        ReasonCode = "no_answer"        // the request was sent, and no answer came
	ReasonAnswerBroken    ReasonCode = "answer_broken"    // the answer broke off
	ReasonRedirectRefused ReasonCode = "redirect_refused" // the server redirected to a place that is not followed
)

// Why a Go function did not succeed.
const (
	ReasonHandlerError ReasonCode = "handler_error" // it returned an error
	ReasonHandlerPanic ReasonCode = "handler_panic" // it panicked, or ended its goroutine
)

// Why a run of any kind was stopped, or was lost.
const (
	ReasonTimeout       ReasonCode = "timeout"        // it ran longer than its timeout
	ReasonKilledByUser  ReasonCode = "killed_by_user" // somebody asked for it to be killed
	ReasonReplaced      ReasonCode = "replaced"       // a later due time took its place
	ReasonNodeStopped   ReasonCode = "node_stopped"   // its node was stopped
	ReasonNodeLost      ReasonCode = "node_lost"      // its node vanished
	ReasonSessionLost   ReasonCode = "session_lost"   // its node lost its session, and killed it
	ReasonGuardKill     ReasonCode = "guard_kill"     // its node was stopped or cut off for too long, and the guard killed it
	ReasonExecutorPanic ReasonCode = "executor_panic" // the node's own code panicked
)

// Why nothing was begun on the node that was to execute the run.
const (
	ReasonStartFailed          ReasonCode = "start_failed"          // the system refused to start the command
	ReasonUserRefused          ReasonCode = "user_refused"          // the node cannot or may not run commands as that user
	ReasonDirectoryUnavailable ReasonCode = "directory_unavailable" // the directory is missing, or does not answer
	ReasonLimitUnavailable     ReasonCode = "limit_unavailable"     // the node cannot hold a limit of the job
	ReasonSecretUnreadable     ReasonCode = "secret_unreadable"     // a secret is missing, or could not be read
	ReasonRequestInvalid       ReasonCode = "request_invalid"       // the definition does not make a request that can be sent
	ReasonHandlerMissing       ReasonCode = "handler_missing"       // the node has no Go function of that name
	ReasonExecutorMissing      ReasonCode = "executor_missing"      // the node does not execute jobs of this kind
)

// Why a due time was not started.
const (
	ReasonPreviousRunExecuting ReasonCode = "previous_run_executing"    // overlap: the run before it still executes
	ReasonPreviousRunWaiting   ReasonCode = "previous_run_waiting"      // overlap: the run before it still waits for its start
	ReasonBackfillRunAhead     ReasonCode = "backfill_run_ahead"        // overlap: another due time already waits for a backfill's run
	ReasonQueueFull            ReasonCode = "queue_full"                // overlap: as many due times wait as the job allows
	ReasonGroupFull            ReasonCode = "group_full"                // its group has no free slot, and as many wait as the job allows
	ReasonGroupMissing         ReasonCode = "group_missing"             // its group does not exist
	ReasonAppRunsLimit         ReasonCode = "app_limit_runs_per_minute" // its app has had as many runs in a minute as it may have
	ReasonAppWaitingLimit      ReasonCode = "app_limit_waiting"         // its app has as many waiting runs as it may have
	ReasonJobPaused            ReasonCode = "job_paused"                // its job was paused
	ReasonAppPaused            ReasonCode = "app_paused"                // its app was paused
	ReasonClusterPaused        ReasonCode = "cluster_paused"            // the cluster was paused
	ReasonHandlerDisabled      ReasonCode = "handler_disabled"          // its Go function was disabled
	ReasonDatabaseRestored     ReasonCode = "database_restored"         // it was due before the database was restored: it may have run
	ReasonBackfillCancelled    ReasonCode = "backfill_cancelled"        // its backfill was cancelled
	ReasonDefinitionInvalid    ReasonCode = "definition_invalid"        // the definition of its job cannot be used
	ReasonMisfire              ReasonCode = "misfire"                   // nobody could start it in time, and the misfire policy does not start it late
	ReasonStartDeadline        ReasonCode = "start_deadline"            // nobody could start it before its start deadline
	ReasonWaitDeadline         ReasonCode = "wait_deadline"             // it waited for a run or a slot until its start deadline
	ReasonNoNode               ReasonCode = "no_node"                   // no node matched what the job wants of nodes
	ReasonJobDeleted           ReasonCode = "job_deleted"               // its job was deleted
	ReasonScheduleChanged      ReasonCode = "schedule_changed"          // the schedule was changed before the due time was claimed
)

// Coded gives an error the code of the reason that it becomes, as the cause for which a run is stopped or is not begun.
func Coded(code ReasonCode, err error) error { return &codedError{err, code} }

type codedError struct {
	error
	code ReasonCode
}

func (e *codedError) Unwrap() error { return e.error }

// CodeOf returns the code of an error, which Coded gave to it or to one that it wraps, or else the usual code.
func CodeOf(err error, usual ReasonCode) ReasonCode {
	if e, ok := errors.AsType[*codedError](err); ok {
		return e.code
	}
	return usual
}
