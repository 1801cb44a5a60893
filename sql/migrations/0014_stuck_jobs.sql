-- Which jobs have tasks that wait for runs of their own job, for which the sweeper asks each second: an index of them, by which
-- the server goes from job to job, however many tasks of each wait.
--
-- waiting is short as a rule, and written for waits alone.

-- +goose Up
ALTER TABLE waiting ADD KEY stuck (kind, job_id), ALGORITHM=INPLACE, LOCK=NONE;

-- +goose Down
ALTER TABLE waiting DROP KEY stuck;
