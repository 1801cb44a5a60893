package job

import "errors"

// Reason says why a run ended with its outcome. The zero value means that the outcome needs no
// reason.
type Reason struct {
	Code ReasonCode // for programs; empty if the run succeeded, even with a text such as "HTTP 200 OK"
	Text string     // for people, one line
}

func (r Reason) String() string { return r.Text }

// ReasonCode names a reason, in at most 32 ASCII characters. Its meaning never changes, even if the
// text is reworded. docs/internals/reasons.md lists all codes.
type ReasonCode string

// Commands that failed or left processes.
const (
	// It ended with an exit code that does not count as success.
	ReasonExitCode ReasonCode = "exit_code"
	// It ended with one of its skip_exit_codes. The outcome is skipped.
	ReasonNothingToDo ReasonCode = "nothing_to_do"
	// It ended, and its exit code could not be read.
	ReasonExitCodeUnknown ReasonCode = "exit_code_unknown"
	// A signal that no node sent ended it.
	ReasonSignal ReasonCode = "signal"
	// It used more memory than limits.memory.
	ReasonMemoryLimit ReasonCode = "memory_limit"
	// Its machine had no memory left.
	ReasonMachineMemory ReasonCode = "machine_memory"
	// It used more processor time than limits.cpu_seconds.
	ReasonCPULimit ReasonCode = "cpu_limit"
	// It wrote a larger file than limits.file_size.
	ReasonFileSizeLimit ReasonCode = "file_size_limit"
	// It ended well, but limits.pids kept it from starting a process or thread.
	ReasonPIDsLimit ReasonCode = "pids_limit"
	// It ended well, but its background processes had to be ended.
	ReasonProcessesEnded ReasonCode = "processes_ended"
	// It ended well, but processes outside its group had to be killed.
	ReasonProcessesKilled ReasonCode = "processes_killed"
	// It ended well, but a background process still holds its output.
	ReasonOutputHeld ReasonCode = "output_held"
	// It ended well, but the node could not store all the output that output.keep asks for.
	ReasonOutputCut ReasonCode = "output_cut"
)

// The job follows others.
const (
	// An edit of the job has removed the job that it followed.
	ReasonNotFollowed ReasonCode = "not_followed"
)

// Why a request did not succeed.
const (
	// The status of the answer is not an expected one.
	ReasonHTTPStatus ReasonCode = "http_status"
	// There was no connection, so nothing was sent.
	ReasonNoConnection ReasonCode = "no_connection"
	// The node may not connect to that address.
	ReasonAddressRefused ReasonCode = "address_refused"
	// The request was sent, and no answer came.
	ReasonNoAnswer ReasonCode = "no_answer"
	// The answer broke off.
	ReasonAnswerBroken ReasonCode = "answer_broken"
	// The server redirected to a place that is not followed.
	ReasonRedirectRefused ReasonCode = "redirect_refused"
)

// Why a Go function did not succeed.
const (
	// It returned an error.
	ReasonHandlerError ReasonCode = "handler_error"
	// It panicked, or ended its goroutine.
	ReasonHandlerPanic ReasonCode = "handler_panic"
)

// Why a run of any kind was stopped, or was lost.
const (
	// It ran longer than its timeout.
	ReasonTimeout ReasonCode = "timeout"
	// A user had it killed.
	ReasonKilledByUser ReasonCode = "killed_by_user"
	// A later due time took its place.
	ReasonReplaced ReasonCode = "replaced"
	// Its node was stopped.
	ReasonNodeStopped ReasonCode = "node_stopped"
	// Its node stopped responding.
	ReasonNodeLost ReasonCode = "node_lost"
	// Its node lost its session, and killed it.
	ReasonSessionLost ReasonCode = "session_lost"
	// Its node hung or lost MySQL for too long, and the guard killed the run.
	ReasonGuardKill ReasonCode = "guard_kill"
	// The node's own code panicked.
	ReasonExecutorPanic ReasonCode = "executor_panic"
)

// Why the node could not begin the run.
const (
	// The system refused to start the command.
	ReasonStartFailed ReasonCode = "start_failed"
	// The node cannot or may not run commands as that user.
	ReasonUserRefused ReasonCode = "user_refused"
	// The directory is missing, or does not answer.
	ReasonDirectoryUnavailable ReasonCode = "directory_unavailable"
	// The node cannot hold a limit of the job.
	ReasonLimitUnavailable ReasonCode = "limit_unavailable"
	// A secret is missing, or could not be read.
	ReasonSecretUnreadable ReasonCode = "secret_unreadable"
	// The run has no value of a parameter, or one that no longer fits.
	ReasonParamInvalid ReasonCode = "param_invalid"
	// The definition does not make a request that can be sent.
	ReasonRequestInvalid ReasonCode = "request_invalid"
	// The node has no Go function of that name.
	ReasonHandlerMissing ReasonCode = "handler_missing"
	// The node does not execute jobs of this kind.
	ReasonExecutorMissing ReasonCode = "executor_missing"
)

// Why a due time was not started.
const (
	// Overlap: the run before it still executes.
	ReasonPreviousRunExecuting ReasonCode = "previous_run_executing"
	// Overlap: the run before it still waits for its start.
	ReasonPreviousRunWaiting ReasonCode = "previous_run_waiting"
	// Overlap: another due time already waits for a backfill's run.
	ReasonBackfillRunAhead ReasonCode = "backfill_run_ahead"
	// Overlap: the job's limit of waiting due times is reached.
	ReasonQueueFull ReasonCode = "queue_full"
	// Its group has no free slot, or has used up its rate, and the job's limit of waiting due times is reached.
	ReasonGroupFull ReasonCode = "group_full"
	// Its group does not exist.
	ReasonGroupMissing ReasonCode = "group_missing"
	// Its app has reached its limit of runs a minute.
	ReasonAppRunsLimit ReasonCode = "app_limit_runs_per_minute"
	// Its app has reached its limit of waiting runs.
	ReasonAppWaitingLimit ReasonCode = "app_limit_waiting"
	// Its job was paused.
	ReasonJobPaused ReasonCode = "job_paused"
	// Its app was paused.
	ReasonAppPaused ReasonCode = "app_paused"
	// The cluster was paused.
	ReasonClusterPaused ReasonCode = "cluster_paused"
	// Its Go function was disabled.
	ReasonHandlerDisabled ReasonCode = "handler_disabled"
	// It was due before the database was restored: it may have run.
	ReasonDatabaseRestored ReasonCode = "database_restored"
	// Its backfill was cancelled.
	ReasonBackfillCancelled ReasonCode = "backfill_cancelled"
	// The definition of its job cannot be used.
	ReasonDefinitionInvalid ReasonCode = "definition_invalid"
	// No node could start it in time, and the misfire policy forbids a late start.
	ReasonMisfire ReasonCode = "misfire"
	// No node could start it before its start deadline.
	ReasonStartDeadline ReasonCode = "start_deadline"
	// It waited for a run or a slot until its start deadline.
	ReasonWaitDeadline ReasonCode = "wait_deadline"
	// No node matched the job's requirements.
	ReasonNoNode ReasonCode = "no_node"
	// Its job was deleted.
	ReasonJobDeleted ReasonCode = "job_deleted"
	// The schedule was changed before the due time was claimed.
	ReasonScheduleChanged ReasonCode = "schedule_changed"
)

// Coded attaches a reason code to an error that stops a run or prevents its start.
func Coded(code ReasonCode, err error) error { return &codedError{err, code} }

type codedError struct {
	error
	code ReasonCode
}

func (e *codedError) Unwrap() error { return e.error }

// CodeOf returns the code attached to an error or to an error that it wraps. It returns usual if
// there is none.
func CodeOf(err error, usual ReasonCode) ReasonCode {
	if e, ok := errors.AsType[*codedError](err); ok {
		return e.code
	}
	return usual
}
