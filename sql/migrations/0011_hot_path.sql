-- Rows of tasks that do not grow when they are claimed. A row that grows is removed from its page and written anew, and of
-- a table of new tasks that are all claimed nearly each page is split: five times the log of a claim in place.
--
-- Changes defaults alone, at once, whatever the size of the table. Rows that are there already keep their NULL, and so do
-- those that nodes of the version before give back: it means the same. Such nodes take the default for the id of a session
-- that is gone, and look at its tasks in vain, until they are replaced.

-- +goose Up

ALTER TABLE task ALTER COLUMN session_id SET DEFAULT '', ALTER COLUMN launch SET DEFAULT 0;

CREATE OR REPLACE VIEW v_task AS
  SELECT t.id, j.app, j.name AS job, TIMESTAMPADD(MICROSECOND, t.due, '1970-01-01') AS due, t.origin,
         ELT(t.state + 1, 'idle', 'prepare', 'executing', 'waiting') AS state, t.attempt,
         IF(t.state IN (1, 2), CONCAT(LOWER(HEX(t.session_id)), '-', t.launch), NULL) AS launch,
         TIMESTAMPADD(MICROSECOND, NULLIF(t.started, 0), '1970-01-01') AS started
  FROM task t JOIN job j ON j.id = t.job_id;

-- +goose Down
CREATE OR REPLACE VIEW v_task AS
  SELECT t.id, j.app, j.name AS job, TIMESTAMPADD(MICROSECOND, t.due, '1970-01-01') AS due, t.origin,
         ELT(t.state + 1, 'idle', 'prepare', 'executing', 'waiting') AS state, t.attempt,
         CONCAT(LOWER(HEX(t.session_id)), '-', t.launch) AS launch,
         TIMESTAMPADD(MICROSECOND, NULLIF(t.started, 0), '1970-01-01') AS started
  FROM task t JOIN job j ON j.id = t.job_id;
ALTER TABLE task ALTER COLUMN session_id SET DEFAULT NULL, ALTER COLUMN launch SET DEFAULT NULL;
UPDATE task SET session_id = NULL, launch = NULL WHERE state IN (0, 3);
