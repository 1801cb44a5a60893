-- Jobs that follow other jobs, parameters of runs, and rates of groups.

-- +goose Up

ALTER TABLE job
  ADD COLUMN followed TINYINT NOT NULL DEFAULT 0 COMMENT '1: other jobs may be due when a run of it ends',
  ADD COLUMN gathers BIGINT NOT NULL DEFAULT 0 COMMENT 'counts starts that wait for ends of other jobs, see DropIncomplete',
  ALGORITHM=INSTANT;

ALTER TABLE run
  ADD COLUMN given TEXT NULL COMMENT 'JSON of what the run was given: parameters, and the run that it follows',
  ALGORITHM=INSTANT;

ALTER TABLE backfill
  ADD COLUMN given TEXT NULL COMMENT 'JSON of what its runs are given, see run.given',
  ALGORITHM=INSTANT;

ALTER TABLE run
  MODIFY COLUMN kind ENUM('schedule','manual','backfill','after') NOT NULL,
  ALGORITHM=INSTANT;

-- Ends of runs for which a job waits that follows several jobs. The job's next run removes them.
-- Ends with the same head and time belong to one wave.
CREATE TABLE arrival (
  job_id   BIGINT NOT NULL COMMENT 'the job that waits',
  run_id   BIGINT NOT NULL COMMENT 'the run that ended',
  upstream BIGINT NOT NULL COMMENT 'job of that run',
  ended    BIGINT NOT NULL,
  head     BIGINT NOT NULL COMMENT 'job in which the chain of runs began',
  scheduled BIGINT NOT NULL COMMENT 'due time of the first run of the chain',
  PRIMARY KEY (job_id, run_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

INSERT IGNORE INTO locks (id, name) VALUES (1, 'after');

ALTER TABLE grp
  ADD COLUMN rate   INT NOT NULL DEFAULT 0    COMMENT 'most starts within a period; 0: no limit',
  ADD COLUMN period BIGINT NOT NULL DEFAULT 0 COMMENT 'length of the period in microseconds',
  ADD COLUMN starts BLOB NULL                 COMMENT 'times of its latest starts, oldest first, 8 bytes each; at most rate of them',
  ADD COLUMN wake_at BIGINT NOT NULL DEFAULT 0 COMMENT 'when the rate admits the first waiting run; 0: no run waits for that',
  ADD KEY wake (wake_at);
