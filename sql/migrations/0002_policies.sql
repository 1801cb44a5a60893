-- Policies that hold a due time back: queues, groups, calendars, pauses of many, placement; and what nodes, backfills
-- and live output need.

-- +goose Up

ALTER TABLE task
  ADD COLUMN place    INT     NOT NULL DEFAULT 0 COMMENT 'which nodes may take it: a row of place, 0: any',
  ADD COLUMN priority TINYINT NOT NULL DEFAULT 0 COMMENT 'the higher goes first when there is no room for all',
  MODIFY COLUMN state TINYINT NOT NULL DEFAULT 0 COMMENT '0 idle, 1 prepare, 2 executing, 3 waiting',
  MODIFY COLUMN kill_requested TINYINT NOT NULL DEFAULT 0 COMMENT 'the executing attempt is to be killed: 1 somebody wants that, 2 a later due time replaces it',
  DROP KEY slice,
  ADD KEY slice (state, due_now, hash, place, priority);

ALTER TABLE job
  ADD COLUMN place        INT          NOT NULL DEFAULT 0  COMMENT 'see task.place',
  ADD COLUMN replan       TINYINT      NOT NULL DEFAULT 0  COMMENT 'a calendar has changed: what is planned ahead is not right any more',
  ADD COLUMN held         TINYINT      NOT NULL DEFAULT 0  COMMENT 'has no due times because its app or the cluster is paused',
  ADD COLUMN pause_until  BIGINT       NOT NULL DEFAULT 0  COMMENT 'when the pause ends by itself, 0: it does not',
  ADD COLUMN pause_reason VARCHAR(512) NOT NULL DEFAULT '',
  ADD COLUMN paused_by    VARCHAR(128) NOT NULL DEFAULT '';
ALTER TABLE job ADD KEY held (held, app); -- by itself, so that the columns before are added at once

ALTER TABLE session
  ADD COLUMN labels      TEXT   NULL COMMENT 'JSON object',
  ADD COLUMN handlers    TEXT   NULL COMMENT 'JSON array: the keys of the handlers that it has',
  ADD COLUMN cordon_seen BIGINT NOT NULL DEFAULT 0 COMMENT 'node.since of the cordon since which it holds nothing prepared and starts nothing';

-- A task in state 3 has a row here: it is due, and something must end before it may start.
CREATE TABLE waiting (
  task_id  BIGINT  NOT NULL,
  kind     TINYINT NOT NULL COMMENT '1 for its job: runs of it, 2 for a slot of its group, 3 for a node that it may run on',
  job_id   BIGINT  NOT NULL,
  group_id BIGINT  NOT NULL DEFAULT 0 COMMENT 'of kind 2 the group, of kind 3 the place',
  turn     TINYINT NOT NULL DEFAULT 0 COMMENT 'minus the priority: the lowest goes first',
  due      BIGINT  NOT NULL,
  since    BIGINT  NOT NULL,
  expires  BIGINT  NOT NULL COMMENT 'when it ends missed; the end of time when there is no start deadline',
  PRIMARY KEY (task_id),
  KEY job (job_id, due),
  KEY grp (kind, group_id, turn, due),
  KEY expires (expires)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE grp (
  id      BIGINT       NOT NULL AUTO_INCREMENT,
  name    VARCHAR(128) NOT NULL,
  slots   INT          NOT NULL COMMENT 'runs of its jobs that may execute at once in the whole cluster',
  taken   BIGINT       NOT NULL DEFAULT 0 COMMENT 'written by who takes slots, so that such exclude each other',
  created BIGINT       NOT NULL,
  updated BIGINT       NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Who executes in a group, or has been woken to do so. A row whose task has gone counts for nothing.
CREATE TABLE slot (
  task_id  BIGINT NOT NULL,
  group_id BIGINT NOT NULL,
  PRIMARY KEY (task_id),
  KEY grp (group_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What living jobs refer to by name: kind 1 group, 2 calendar.
CREATE TABLE job_ref (
  kind   TINYINT      NOT NULL,
  name   VARCHAR(128) NOT NULL,
  job_id BIGINT       NOT NULL,
  PRIMARY KEY (kind, name, job_id),
  KEY job (job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE place (
  id       INT          NOT NULL AUTO_INCREMENT,
  selector VARCHAR(700) NOT NULL COMMENT 'which labels a node must have, in the canonical form, that of its handler included',
  PRIMARY KEY (id),
  UNIQUE KEY selector (selector)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What people said about nodes, by name: it outlives sessions.
CREATE TABLE node (
  name     VARCHAR(128) NOT NULL,
  cordoned TINYINT      NOT NULL DEFAULT 0 COMMENT 'takes no new work',
  draining TINYINT      NOT NULL DEFAULT 0 COMMENT 'and somebody waits until it has none',
  reason   VARCHAR(512) NOT NULL DEFAULT '',
  who      VARCHAR(128) NOT NULL DEFAULT '',
  since    BIGINT       NOT NULL DEFAULT 0,
  PRIMARY KEY (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE handler_off (
  handler VARCHAR(128) NOT NULL COMMENT 'jobs with this handler are not started anywhere',
  reason  VARCHAR(512) NOT NULL DEFAULT '',
  who     VARCHAR(128) NOT NULL DEFAULT '',
  since   BIGINT       NOT NULL,
  PRIMARY KEY (handler)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Pauses of an app, or, with an empty name, of the whole cluster.
CREATE TABLE pause (
  app    VARCHAR(128) NOT NULL,
  until  BIGINT       NOT NULL DEFAULT 0 COMMENT 'when it ends by itself, 0: it does not; once it is over, when it ended',
  ended  TINYINT      NOT NULL DEFAULT 0 COMMENT '1: it is over and the audit says so; the row goes once no job is held for it any more',
  reason VARCHAR(512) NOT NULL DEFAULT '',
  who    VARCHAR(128) NOT NULL DEFAULT '',
  since  BIGINT       NOT NULL,
  PRIMARY KEY (app)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE calendar (
  id       BIGINT       NOT NULL AUTO_INCREMENT,
  name     VARCHAR(128) NOT NULL,
  version  BIGINT       NOT NULL DEFAULT 1,
  spec     MEDIUMTEXT   NOT NULL COMMENT 'the definition as JSON',
  digest   BINARY(32)   NOT NULL COMMENT 'SHA-256 of spec: who knows it need not read that',
  timezone VARCHAR(64)  NOT NULL DEFAULT '' COMMENT 'of the definition, for lists, as the next two',
  excludes INT          NOT NULL DEFAULT 0,
  includes INT          NOT NULL DEFAULT 0,
  named    BIGINT       NOT NULL DEFAULT 0 COMMENT 'written by each change of a job that names it, so that such and changes of the calendar exclude each other',
  created  BIGINT       NOT NULL,
  updated  BIGINT       NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Its id is that of a request, and the origin of its tasks is that below zero.
CREATE TABLE backfill (
  id       BIGINT       NOT NULL,
  job_id   BIGINT       NOT NULL,
  first    BIGINT       NOT NULL COMMENT 'due times from here …',
  last     BIGINT       NOT NULL COMMENT '… up to here, both included',
  next_due BIGINT       NULL     COMMENT 'the first one without a task; NULL: none is left, or it was cancelled',
  parallel INT          NOT NULL COMMENT 'tasks of it at once',
  total    BIGINT       NOT NULL COMMENT 'due times in all',
  planned  BIGINT       NOT NULL DEFAULT 0 COMMENT 'how many of them have or had a task',
  missing  TINYINT      NOT NULL DEFAULT 0 COMMENT 'leave out due times that have a run which succeeded',
  left_out BIGINT       NOT NULL DEFAULT 0 COMMENT 'how many that were',
  state    TINYINT      NOT NULL DEFAULT 0 COMMENT '0 running, 1 done, 2 cancelled',
  who      VARCHAR(128) NOT NULL DEFAULT '',
  created  BIGINT       NOT NULL,
  updated  BIGINT       NOT NULL,
  PRIMARY KEY (id),
  KEY job (job_id),
  KEY state (state)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Output of attempts that execute, in pieces; it goes to output when they end.
CREATE TABLE chunk (
  session_id BINARY(16) NOT NULL,
  launch     BIGINT     NOT NULL,
  at_byte    BIGINT     NOT NULL COMMENT 'where in the output it begins',
  data       MEDIUMBLOB NOT NULL,
  PRIMARY KEY (session_id, launch, at_byte)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE audit (
  id      BIGINT       NOT NULL AUTO_INCREMENT,
  at      BIGINT       NOT NULL,
  who     VARCHAR(128) NOT NULL COMMENT 'a person, a token, or a node',
  origin  VARCHAR(64)  NOT NULL DEFAULT '' COMMENT 'where the request came from',
  action  VARCHAR(32)  NOT NULL,
  kind    VARCHAR(16)  NOT NULL COMMENT 'of what was changed',
  ref     BIGINT       NOT NULL DEFAULT 0 COMMENT 'its id, if it has one',
  app     VARCHAR(128) NOT NULL DEFAULT '',
  name    VARCHAR(128) NOT NULL DEFAULT '',
  reason  VARCHAR(512) NOT NULL DEFAULT '',
  was     MEDIUMTEXT   NULL,
  became  MEDIUMTEXT   NULL,
  PRIMARY KEY (id),
  KEY ref (kind, ref, at),
  KEY at (at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE OR REPLACE VIEW v_task AS
  SELECT t.id, j.app, j.name AS job, TIMESTAMPADD(MICROSECOND, t.due, '1970-01-01') AS due, t.origin,
         ELT(t.state + 1, 'idle', 'prepare', 'executing', 'waiting') AS state, t.attempt,
         CONCAT(LOWER(HEX(t.session_id)), '-', t.launch) AS launch,
         TIMESTAMPADD(MICROSECOND, NULLIF(t.started, 0), '1970-01-01') AS started
  FROM task t JOIN job j ON j.id = t.job_id;

-- +goose Down
CREATE OR REPLACE VIEW v_task AS
  SELECT t.id, j.app, j.name AS job, TIMESTAMPADD(MICROSECOND, t.due, '1970-01-01') AS due, t.origin,
         ELT(t.state + 1, 'idle', 'prepare', 'executing') AS state, t.attempt,
         CONCAT(LOWER(HEX(t.session_id)), '-', t.launch) AS launch,
         TIMESTAMPADD(MICROSECOND, NULLIF(t.started, 0), '1970-01-01') AS started
  FROM task t JOIN job j ON j.id = t.job_id;
UPDATE task SET state = 0 WHERE state = 3;
DROP TABLE audit, chunk, backfill, calendar, pause, handler_off, node, place, job_ref, slot, grp, waiting;
ALTER TABLE session DROP COLUMN cordon_seen, DROP COLUMN handlers, DROP COLUMN labels;
ALTER TABLE job DROP COLUMN paused_by, DROP COLUMN pause_reason, DROP COLUMN pause_until, DROP KEY held, DROP COLUMN held, DROP COLUMN replan, DROP COLUMN place;
ALTER TABLE task DROP KEY slice, DROP COLUMN priority, DROP COLUMN place, ADD KEY slice (state, due_now, hash);
