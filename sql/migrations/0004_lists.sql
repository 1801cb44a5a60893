-- Lists that read no more than they show, whatever they are filtered by; versions of definitions; answers to requests
-- that carry an Idempotency-Key.
--
-- Rebuilds job for its new column: some ten seconds for a million jobs, in which nothing of it can be written and starts
-- wait. Rows that are there already, and those that nodes of the version before write meanwhile, are made to be found in
-- lists by the tidier, in small batches: job.listed = 0 and history.app = 0 say which those are.

-- +goose Up

ALTER TABLE job
  ADD COLUMN finished TINYINT NOT NULL DEFAULT 0 COMMENT '1: somebody saw that it has no due time and no scheduled task any more; taken back by whatever gives it a due time',
  ADD COLUMN listed   TINYINT NOT NULL DEFAULT 0 COMMENT '1: job_term and job_part say what its definition does',
  ADD COLUMN stage    TINYINT AS (CASE WHEN living IS NULL THEN 5 WHEN error <> '' THEN 3 WHEN paused <> 0 OR held <> 0 THEN 2
                                       WHEN next_due IS NOT NULL THEN 0 WHEN finished <> 0 THEN 4 ELSE 1 END) STORED
                      COMMENT '0 has due times to be planned, 1 has none and may have tasks, 2 paused or held, 3 in error, 4 finished, 5 deleted',
  ADD KEY living (living, id),
  ADD KEY app_living (app, living, id),
  ADD KEY stage (stage, id),
  ADD KEY app_stage (app, stage, id),
  ADD KEY listed (listed, id);

-- What living jobs can be found by, but for their names: owners, labels, groups, calendars; each of them alone, and
-- together with the app.
CREATE TABLE job_term (
  term   BINARY(16) NOT NULL COMMENT 'the beginning of a SHA-256, see job.Term',
  job_id BIGINT     NOT NULL,
  PRIMARY KEY (term, job_id),
  KEY job (job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The names of living jobs from each of their characters on: what a name contains is the beginning of one of these.
CREATE TABLE job_part (
  part   VARCHAR(32)      NOT NULL,
  job_id BIGINT           NOT NULL,
  pos    TINYINT UNSIGNED NOT NULL COMMENT 'at which character it begins, from 0',
  PRIMARY KEY (part, job_id, pos),
  KEY job (job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Every definition that a job has had since it is kept here. One stands until the next one does.
CREATE TABLE job_version (
  job_id  BIGINT       NOT NULL,
  version BIGINT       NOT NULL COMMENT 'of the job when it began',
  at      BIGINT       NOT NULL,
  who     VARCHAR(128) NOT NULL COMMENT 'empty for one that is older than this table',
  spec    MEDIUMTEXT   NOT NULL,
  PRIMARY KEY (job_id, version)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- By themselves, so that the columns are added at once.
ALTER TABLE history
  ADD COLUMN app  INT UNSIGNED NOT NULL DEFAULT 0 COMMENT 'CRC32 of the app of its job, 0: nobody has written it yet',
  ADD COLUMN trig TINYINT      NOT NULL DEFAULT 0 COMMENT 'what made it due: 0 the schedule, 1 a request, 2 a backfill';
UPDATE history SET trig = IF(origin > 0, 1, 2) WHERE origin <> 0;
ALTER TABLE history
  ADD KEY by_outcome (outcome, trig, due, id),
  ADD KEY by_app (app, outcome, trig, due, id),
  ADD KEY by_node (node, outcome, trig, due, id);

-- The runs of a job that did not succeed, or that its schedule did not make due: few, where its runs are many.
CREATE TABLE notable (
  job_id  BIGINT  NOT NULL,
  outcome TINYINT NOT NULL,
  trig    TINYINT NOT NULL,
  due     BIGINT  NOT NULL,
  id      BIGINT  NOT NULL COMMENT 'of its row in history; one that has gone counts for nothing',
  PRIMARY KEY (job_id, outcome, trig, due, id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
INSERT INTO notable (job_id, outcome, trig, due, id)
  SELECT job_id, outcome, trig, due, id FROM history WHERE outcome <> 1 OR trig <> 0;

-- Jobs that were moved into another app, and up to which due time their runs are known to be in it.
CREATE TABLE moved (
  job_id BIGINT NOT NULL,
  due    BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

ALTER TABLE request
  ADD COLUMN status SMALLINT      NOT NULL DEFAULT 0 COMMENT 'what it was answered, 0: not yet, or whoever was to answer died',
  ADD COLUMN header VARCHAR(1024) NOT NULL DEFAULT '' COMMENT 'of the answer, as JSON',
  ADD COLUMN answer MEDIUMBLOB    NULL,
  MODIFY COLUMN kind VARCHAR(32)  NOT NULL;

-- +goose Down
DELETE FROM request WHERE kind NOT IN ('run', 'backfill');
ALTER TABLE request DROP COLUMN answer, DROP COLUMN header, DROP COLUMN status, MODIFY COLUMN kind VARCHAR(16) NOT NULL;
DROP TABLE moved, notable;
ALTER TABLE history DROP KEY by_node, DROP KEY by_app, DROP KEY by_outcome, DROP COLUMN trig, DROP COLUMN app;
DROP TABLE job_version, job_part, job_term;
ALTER TABLE job DROP KEY listed, DROP KEY app_stage, DROP KEY stage, DROP KEY app_living, DROP KEY living, DROP COLUMN stage, DROP COLUMN listed, DROP COLUMN finished;
