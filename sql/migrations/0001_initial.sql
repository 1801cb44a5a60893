-- The tables of a cluster. Instants are BIGINT microseconds since 1970 UTC by MySQL's clock; the v_ views show
-- them as text. There are no foreign keys: rows of one task are written and removed in the same transactions.

-- +goose Up

CREATE TABLE job (
  id         BIGINT       NOT NULL AUTO_INCREMENT,
  app        VARCHAR(128) NOT NULL,
  name       VARCHAR(128) NOT NULL,
  living     TINYINT      NULL DEFAULT 1    COMMENT '1, or NULL once deleted, so that the name is free again',
  hash       SMALLINT     NOT NULL          COMMENT 'fine hash, 0..1023; a bucket is a range of them',
  version    BIGINT       NOT NULL DEFAULT 1 COMMENT 'grows with each change of the definition, pause, resume, delete',
  spec       MEDIUMTEXT   NOT NULL          COMMENT 'the definition as JSON',
  paused     TINYINT      NOT NULL DEFAULT 0,
  paused_at  BIGINT       NOT NULL DEFAULT 0,
  next_due   BIGINT       NULL              COMMENT 'first due time not planned yet; NULL: none, paused, deleted or in error',
  last_due   BIGINT       NOT NULL DEFAULT 0 COMMENT 'latest due time that was started or ended; only grows',
  starts     BIGINT       NOT NULL DEFAULT 0 COMMENT 'written by each start, so that starts of one job exclude each other',
  error      VARCHAR(512) NOT NULL DEFAULT '' COMMENT 'why nothing can be planned',
  created    BIGINT       NOT NULL,
  updated    BIGINT       NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY name (app, name, living),
  KEY plan (next_due, hash)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE task (
  id         BIGINT     NOT NULL AUTO_INCREMENT,
  job_id     BIGINT     NOT NULL,
  due        BIGINT     NOT NULL,
  origin     BIGINT     NOT NULL DEFAULT 0  COMMENT '0: the schedule, else the request that asked for it',
  due_now    BIGINT     NOT NULL            COMMENT 'due, or later after a retry',
  hash       SMALLINT   NOT NULL,
  state      TINYINT    NOT NULL DEFAULT 0  COMMENT '0 idle, 1 prepare, 2 executing',
  attempt    INT        NOT NULL DEFAULT 1,
  session_id BINARY(16) NULL,
  launch     BIGINT     NULL                COMMENT 'with session_id the launch id: the fencing token',
  started    BIGINT     NOT NULL DEFAULT 0  COMMENT 'when the start was committed',
  spawn_by   BIGINT     NOT NULL DEFAULT 0  COMMENT 'after this instant nothing may be spawned for the launch',
  kill_requested TINYINT NOT NULL DEFAULT 0 COMMENT 'somebody wants the attempt that is executing to be killed',
  PRIMARY KEY (id),
  UNIQUE KEY due (job_id, due, origin),
  KEY slice (state, due_now, hash),
  KEY owner (session_id, state)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE history (
  id         BIGINT       NOT NULL AUTO_INCREMENT,
  job_id     BIGINT       NOT NULL,
  due        BIGINT       NOT NULL,
  origin     BIGINT       NOT NULL DEFAULT 0,
  attempt    INT          NOT NULL DEFAULT 1,
  session_id BINARY(16)   NOT NULL,
  launch     BIGINT       NOT NULL,
  final      TINYINT      NOT NULL DEFAULT 1,
  outcome    TINYINT      NOT NULL COMMENT '1 succeeded 2 failed 3 timed_out 4 killed 5 lost 6 skipped 7 missed 8 superseded',
  reason     VARCHAR(512) NOT NULL DEFAULT '',
  exit_code  INT          NULL,
  sig        VARCHAR(16)  NOT NULL DEFAULT '',
  due_last   BIGINT       NOT NULL COMMENT 'last due time that the row stands for',
  due_count  BIGINT       NOT NULL DEFAULT 1 COMMENT 'due times that the row stands for',
  started    BIGINT       NOT NULL DEFAULT 0,
  ended      BIGINT       NOT NULL,
  lateness   BIGINT       NOT NULL DEFAULT 0 COMMENT 'microseconds',
  node       VARCHAR(128) NOT NULL DEFAULT '',
  output_bytes BIGINT     NOT NULL DEFAULT 0 COMMENT 'written by the command; what was kept is in output',
  output_kept  BIGINT     NOT NULL DEFAULT 0 COMMENT 'how much of it that is',
  PRIMARY KEY (id),
  UNIQUE KEY attempt (job_id, due, origin, attempt),
  UNIQUE KEY launch (session_id, launch)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE output (
  session_id BINARY(16) NOT NULL,
  launch     BIGINT     NOT NULL,
  head       MEDIUMBLOB NOT NULL,
  tail       MEDIUMBLOB NOT NULL,
  PRIMARY KEY (session_id, launch)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE request (
  id       BIGINT         NOT NULL AUTO_INCREMENT COMMENT 'the origin of the tasks that it asked for',
  kind     VARCHAR(16)    NOT NULL,
  idem_key VARBINARY(255) NULL COMMENT 'Idempotency-Key of the client',
  job_id   BIGINT         NOT NULL,
  digest   BINARY(32)     NOT NULL COMMENT 'of what was asked, so that a key used twice for different things is seen',
  created  BIGINT         NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY idem (idem_key),
  KEY created (created)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE session (
  id        BINARY(16)   NOT NULL,
  node      VARCHAR(128) NOT NULL,
  address   VARCHAR(255) NOT NULL DEFAULT '',
  pid       INT          NOT NULL DEFAULT 0,
  version   VARCHAR(64)  NOT NULL DEFAULT '',
  started   BIGINT       NOT NULL,
  beat      BIGINT       NOT NULL DEFAULT 0 COMMENT 'counts beats; expiry watches this, not a clock',
  beat_at   BIGINT       NOT NULL,
  draining  TINYINT      NOT NULL DEFAULT 0,
  prepared  INT          NOT NULL DEFAULT 0,
  executing INT          NOT NULL DEFAULT 0,
  slots     INT          NOT NULL DEFAULT 0,
  clock_offset BIGINT    NOT NULL DEFAULT 0 COMMENT 'MySQL clock minus node wall clock, microseconds, for people',
  PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE locks (
  id   INT         NOT NULL COMMENT 'locks are taken in this order',
  name VARCHAR(32) NOT NULL,
  n    BIGINT      NOT NULL DEFAULT 0 COMMENT 'written to take the lock',
  PRIMARY KEY (id),
  UNIQUE KEY name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE setting (
  name  VARCHAR(64)  NOT NULL,
  value VARCHAR(255) NOT NULL,
  PRIMARY KEY (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- All lock rows that any number of buckets may need, from the first day: FOR UPDATE on a row that does not
-- exist excludes nobody.
INSERT INTO locks (id, name) VALUES (0, 'session');
INSERT INTO locks (id, name)
  SELECT n + 1, CONCAT('task/', n)
  FROM (SELECT a.d + 16 * b.d AS n
        FROM (SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5
              UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9 UNION ALL SELECT 10
              UNION ALL SELECT 11 UNION ALL SELECT 12 UNION ALL SELECT 13 UNION ALL SELECT 14 UNION ALL SELECT 15) a
        CROSS JOIN
             (SELECT 0 d UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4 UNION ALL SELECT 5
              UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9 UNION ALL SELECT 10
              UNION ALL SELECT 11 UNION ALL SELECT 12 UNION ALL SELECT 13 UNION ALL SELECT 14 UNION ALL SELECT 15) b) numbers;

INSERT INTO setting (name, value) VALUES ('buckets', '16');

CREATE VIEW v_job AS
  SELECT id, app, name, version, paused, living IS NULL AS deleted,
         TIMESTAMPADD(MICROSECOND, next_due, '1970-01-01') AS next_due,
         TIMESTAMPADD(MICROSECOND, NULLIF(last_due, 0), '1970-01-01') AS last_due, error, spec
  FROM job;

CREATE VIEW v_task AS
  SELECT t.id, j.app, j.name AS job, TIMESTAMPADD(MICROSECOND, t.due, '1970-01-01') AS due, t.origin,
         ELT(t.state + 1, 'idle', 'prepare', 'executing') AS state, t.attempt,
         CONCAT(LOWER(HEX(t.session_id)), '-', t.launch) AS launch,
         TIMESTAMPADD(MICROSECOND, NULLIF(t.started, 0), '1970-01-01') AS started
  FROM task t JOIN job j ON j.id = t.job_id;

CREATE VIEW v_history AS
  SELECT h.id, j.app, j.name AS job, TIMESTAMPADD(MICROSECOND, h.due, '1970-01-01') AS due, h.due_count, h.attempt, h.final,
         ELT(h.outcome, 'succeeded', 'failed', 'timed_out', 'killed', 'lost', 'skipped', 'missed', 'superseded') AS outcome,
         h.reason, h.exit_code, TIMESTAMPADD(MICROSECOND, NULLIF(h.started, 0), '1970-01-01') AS started,
         TIMESTAMPADD(MICROSECOND, h.ended, '1970-01-01') AS ended, h.lateness / 1000 AS lateness_ms, h.node,
         CONCAT(LOWER(HEX(h.session_id)), '-', h.launch) AS launch
  FROM history h JOIN job j ON j.id = h.job_id;

CREATE VIEW v_session AS
  SELECT LOWER(HEX(id)) AS id, node, address, pid, version, TIMESTAMPADD(MICROSECOND, started, '1970-01-01') AS started,
         beat, TIMESTAMPADD(MICROSECOND, beat_at, '1970-01-01') AS beat_at, draining, prepared, executing, slots
  FROM session;

-- +goose Down
DROP VIEW v_session, v_history, v_task, v_job;
DROP TABLE setting, locks, session, request, output, history, task, job;
