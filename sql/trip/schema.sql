-- The tables of the trip. Times are microseconds of UTC.

CREATE TABLE job (
  id       BIGINT       NOT NULL AUTO_INCREMENT,
  app_id   INT          NOT NULL,
  name     VARCHAR(128) NOT NULL,
  living   TINYINT      NULL DEFAULT 1      COMMENT '1, or NULL once deleted: the name is free again',
  hash     SMALLINT     NOT NULL            COMMENT '0..1023; a bucket is a range of hashes',
  version  INT          NOT NULL DEFAULT 1  COMMENT 'which definition holds: a row of job_version',
  paused   TINYINT      NOT NULL DEFAULT 0,
  crowded  TINYINT      NOT NULL DEFAULT 0  COMMENT '1: runs that began under overlap allow may still execute',
  next_due BIGINT       NULL                COMMENT 'the cursor: first due time without a run; NULL: none',
  begun_to BIGINT       NOT NULL DEFAULT 0  COMMENT 'latest due time of the schedule whose run has begun or ended; only grows',
  running  BIGINT       NOT NULL DEFAULT 0  COMMENT 'the run whose turn it is: it executes, was woken, or waits for a slot; or it has ended',
  changes  INT          NOT NULL DEFAULT 1  COMMENT 'how often people have changed it: with version its ETag',
  parked   BIGINT       NULL                COMMENT 'the cursor of a paused job, whose next_due is when its pause ends by itself; NULL: none',
  resumed  BIGINT       NOT NULL DEFAULT 0  COMMENT 'when its last pause ended: the misfire policy judges what was due before',
  error    VARCHAR(512) NOT NULL DEFAULT '' COMMENT 'why no due time can be computed',
  PRIMARY KEY (id),
  UNIQUE KEY name (app_id, name, living),
  KEY claim (next_due, hash),
  KEY listed (app_id, living),
  KEY broken (error(8))
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE job_version (
  job_id     BIGINT     NOT NULL,
  version    INT        NOT NULL,
  definition MEDIUMTEXT NOT NULL COMMENT 'JSON; a version never changes',
  calendars  TEXT       NULL     COMMENT 'SHA-256 of each calendar that it names, as hex digits, in their order',
  who        VARCHAR(128) NOT NULL DEFAULT '' COMMENT 'who made the version',
  created    BIGINT     NOT NULL,
  PRIMARY KEY (job_id, version)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE run (
  id        BIGINT   NOT NULL COMMENT 'number of the session that made it, and a counter',
  job_id    BIGINT   NOT NULL,
  app_id    INT      NOT NULL,
  version   INT      NOT NULL DEFAULT 0 COMMENT 'the definition that it began under',
  due       BIGINT   NOT NULL,
  kind      ENUM('schedule','manual','backfill') NOT NULL,
  request   BIGINT   NOT NULL DEFAULT 0 COMMENT 'who asked for it: a row of request; 0: the schedule',
  attempt   SMALLINT NOT NULL DEFAULT 1,
  state     ENUM('idle','prepared','executing','waiting','ended') NOT NULL,
  owner     INT      NOT NULL COMMENT 'number of a session; 0 idle, -1 waiting, -2 ended',
  claim     INT      NOT NULL COMMENT 'how often it was claimed: with id the fencing token',
  due_now   BIGINT   NOT NULL COMMENT 'due, or later: a retry, a run that waited; while it waits, its place in the line',
  hash      SMALLINT NOT NULL,
  wish      ENUM('kill','replace') NULL COMMENT 'somebody wants the run killed, or a later due time takes its place',
  grp       INT      NOT NULL DEFAULT 0 COMMENT 'executing: the group whose slot it holds; idle: below zero, woken for a slot of that group',
  awaited   TINYINT  NOT NULL DEFAULT 0 COMMENT '1: a run may wait for the end of this one',
  session   INT      NOT NULL DEFAULT 0 COMMENT 'the session that started or ended it',
  started   BIGINT   NOT NULL DEFAULT 0,
  spawn_by  BIGINT   NOT NULL DEFAULT 0 COMMENT 'nothing may be spawned for it after this instant',
  ended     BIGINT   NOT NULL DEFAULT 0,
  outcome   ENUM('succeeded','failed','timed_out','killed','lost','skipped','missed','superseded','none') NOT NULL DEFAULT 'none',
  final     TINYINT  NOT NULL DEFAULT 0 COMMENT '1: no attempt follows',
  exit_code SMALLINT NOT NULL DEFAULT -1 COMMENT '-1: none',
  sig       VARCHAR(16)  NULL,
  reason    VARCHAR(512) NULL,
  due_last  BIGINT   NULL COMMENT 'last of the due times that the row counts',
  due_count BIGINT   NULL COMMENT 'how many due times the row counts',
  output_bytes BIGINT NOT NULL DEFAULT 0,
  output_kept  INT    NOT NULL DEFAULT 0,
  PRIMARY KEY (id),
  UNIQUE KEY attempt (job_id, due, request, attempt),
  KEY live (owner, due_now, hash),
  KEY by_app (app_id, due)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE grp (
  id    INT          NOT NULL AUTO_INCREMENT,
  name  VARCHAR(128) NOT NULL,
  slots INT          NOT NULL,
  taken INT          NOT NULL DEFAULT 0 COMMENT 'how many executing runs hold a slot of it: as many as have run.grp = id',
  PRIMARY KEY (id),
  UNIQUE KEY name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE stop (
  kind   ENUM('cluster','app','handler','restored') NOT NULL COMMENT 'whose runs are not started',
  name   VARCHAR(128) NOT NULL DEFAULT '' COMMENT 'of the app or handler',
  app_id INT          NOT NULL DEFAULT 0,
  since  BIGINT       NOT NULL,
  until  BIGINT       NOT NULL DEFAULT 0 COMMENT 'when it ends by itself, 0: it does not; restored: due times before it are not started',
  who    VARCHAR(128) NOT NULL DEFAULT '',
  reason VARCHAR(512) NOT NULL DEFAULT '',
  PRIMARY KEY (kind, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE output (
  run_id BIGINT     NOT NULL,
  head   MEDIUMBLOB NOT NULL,
  tail   MEDIUMBLOB NOT NULL,
  PRIMARY KEY (run_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE life (
  id      INT          NOT NULL AUTO_INCREMENT COMMENT 'the session number in runs; never used again',
  session BINARY(16)   NOT NULL,
  node    VARCHAR(128) NOT NULL,
  started BIGINT       NOT NULL,
  gone    BIGINT       NULL COMMENT 'when it left or was buried',
  PRIMARY KEY (id),
  UNIQUE KEY session (session)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What people say about jobs.

CREATE TABLE app (
  id   INT          NOT NULL AUTO_INCREMENT,
  name VARCHAR(128) NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE job_pause (
  job_id BIGINT       NOT NULL,
  since  BIGINT       NOT NULL,
  until  BIGINT       NOT NULL DEFAULT 0 COMMENT 'when it ends by itself; 0: when somebody ends it',
  who    VARCHAR(128) NOT NULL,
  reason VARCHAR(512) NOT NULL DEFAULT '',
  PRIMARY KEY (job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE job_ref (
  kind   TINYINT      NOT NULL COMMENT '1 group, 2 calendar, 3 secret, 4 ping',
  name   VARCHAR(128) NOT NULL,
  job_id BIGINT       NOT NULL,
  PRIMARY KEY (kind, name, job_id),
  KEY job (job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE request (
  id       BIGINT         NOT NULL AUTO_INCREMENT COMMENT 'run.request of the runs that it asked for',
  kind     VARCHAR(32)    NOT NULL,
  idem_key VARBINARY(255) NULL COMMENT 'Idempotency-Key of the client',
  job_id   BIGINT         NOT NULL,
  digest   BINARY(32)     NOT NULL COMMENT 'of what was asked, so that a key used twice for different things is seen',
  created  BIGINT         NOT NULL,
  status   SMALLINT       NOT NULL DEFAULT 0 COMMENT 'what it was answered, 0: not yet, or whoever was to answer died',
  header   VARCHAR(1024)  NOT NULL DEFAULT '' COMMENT 'of the answer, as JSON',
  answer   MEDIUMBLOB     NULL,
  PRIMARY KEY (id),
  UNIQUE KEY idem (idem_key),
  KEY created (created)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE calendar (
  id       BIGINT       NOT NULL AUTO_INCREMENT,
  name     VARCHAR(128) NOT NULL,
  version  BIGINT       NOT NULL DEFAULT 1,
  spec     MEDIUMTEXT   NOT NULL COMMENT 'the definition as JSON',
  digest   BINARY(32)   NOT NULL COMMENT 'SHA-256 of spec',
  timezone VARCHAR(64)  NOT NULL DEFAULT '' COMMENT 'of the definition, for lists, as the next two',
  excludes INT          NOT NULL DEFAULT 0,
  includes INT          NOT NULL DEFAULT 0,
  named    BIGINT       NOT NULL DEFAULT 0 COMMENT 'written by each change of a job that names it: so changes of the calendar and of the job exclude each other',
  created  BIGINT       NOT NULL,
  updated  BIGINT       NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY name (name)
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
  KEY at (at),
  KEY who (who, at),
  KEY app (app, at),
  KEY name (name, at),
  KEY action (action, at),
  KEY kind (kind, at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE backfill (
  id       BIGINT       NOT NULL COMMENT 'that of its request, which its runs carry',
  job_id   BIGINT       NOT NULL,
  first    BIGINT       NOT NULL COMMENT 'due times from here …',
  last     BIGINT       NOT NULL COMMENT '… up to here, both included',
  next_due BIGINT       NULL     COMMENT 'the cursor: first due time without a run; NULL: none is left',
  done_to  BIGINT       NOT NULL COMMENT 'all due times up to here have ended',
  parallel INT          NOT NULL COMMENT 'how many runs of it may be alive',
  missing  TINYINT      NOT NULL DEFAULT 0 COMMENT 'leave out due times that have a run which succeeded',
  total    BIGINT       NOT NULL COMMENT 'due times in all',
  planned  BIGINT       NOT NULL DEFAULT 0 COMMENT 'how many of them have or had a run',
  left_out BIGINT       NOT NULL DEFAULT 0 COMMENT 'how many had succeeded before',
  state    ENUM('running','done','cancelled') NOT NULL,
  who      VARCHAR(128) NOT NULL DEFAULT '',
  created  BIGINT       NOT NULL,
  updated  BIGINT       NOT NULL,
  PRIMARY KEY (id),
  KEY job (job_id),
  KEY state (state)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What people find runs and jobs by. The trip reads none of it.

CREATE TABLE notable (
  outcome ENUM('succeeded','failed','timed_out','killed','lost','skipped','missed','superseded') NOT NULL,
  due     BIGINT NOT NULL,
  run_id  BIGINT NOT NULL COMMENT 'a run that has ended and did not succeed',
  app_id  INT    NOT NULL,
  job_id  BIGINT NOT NULL,
  PRIMARY KEY (outcome, due, run_id),
  KEY by_app (app_id, outcome, due),
  KEY by_job (job_id, outcome, due)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE ending (
  id   BIGINT     NOT NULL AUTO_INCREMENT,
  at   BIGINT     NOT NULL,
  runs MEDIUMBLOB NOT NULL COMMENT 'the runs that one transaction has ended, see note.go',
  PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE job_term (
  term   BINARY(16) NOT NULL COMMENT 'an owner, a label, a group or a calendar: the beginning of a SHA-256',
  job_id BIGINT     NOT NULL COMMENT 'a living job',
  PRIMARY KEY (term, job_id),
  KEY job (job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE job_part (
  part   VARCHAR(32)      NOT NULL COMMENT 'the name of a living job from one of its characters on',
  job_id BIGINT           NOT NULL,
  pos    TINYINT UNSIGNED NOT NULL COMMENT 'which character that is, from 0',
  PRIMARY KEY (part, job_id, pos),
  KEY job (job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE chunk (
  run_id  BIGINT     NOT NULL,
  claim   INT        NOT NULL,
  at_byte BIGINT     NOT NULL COMMENT 'where in the output it begins',
  data    MEDIUMBLOB NOT NULL,
  PRIMARY KEY (run_id, claim, at_byte)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
