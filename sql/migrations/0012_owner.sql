-- A start leaves the index of who owns a task alone: it held the state, so that each start moved its entry, which costs as much
-- as writing the row, and then a purge. What is to be killed, for which a session asks with each beat, is found by that itself.
--
-- The index keeps its name, which statements of the version before give, and serves them as it did.

-- +goose Up
ALTER TABLE task DROP KEY owner, ADD KEY owner (session_id, kill_requested), ALGORITHM=INPLACE, LOCK=NONE;

-- +goose Down
ALTER TABLE task DROP KEY owner, ADD KEY owner (session_id, state), ALGORITHM=INPLACE, LOCK=NONE;
