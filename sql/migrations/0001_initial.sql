-- The tables of a cluster. Times are BIGINT microseconds since 1970 UTC by MySQL's clock; the views at the end show them as text. There
-- are no foreign keys: the rows that belong together are written and removed by one transaction.

-- +goose Up

-- The trip of a run.

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
  reason_code VARCHAR(32) CHARACTER SET ascii COLLATE ascii_bin NULL COMMENT 'what reason says, for programs',
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
  created BIGINT     NOT NULL DEFAULT 0,
  updated BIGINT     NOT NULL DEFAULT 0 COMMENT 'when it got this number of slots',
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
  encoding TINYINT  NOT NULL DEFAULT 0 COMMENT 'of head and tail: 0 as it was written, 1 DEFLATE',
  counted  BIGINT   NOT NULL DEFAULT 0 COMMENT 'in which count of its app it is: app_output.count; 0: in none',
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
  kind   TINYINT      NOT NULL COMMENT '1 group, 2 calendar, 3 secret, 4 ping, 5 handler',
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

-- Nodes.

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
  labels    TEXT         NULL COMMENT 'JSON object',
  handlers  TEXT         NULL COMMENT 'JSON array: the keys of the handlers that it has',
  cordon_seen BIGINT     NOT NULL DEFAULT 0 COMMENT 'node.since of the cordon since which it holds nothing prepared and starts nothing',
  zones      VARCHAR(32) NOT NULL DEFAULT '' COMMENT 'fingerprint of the time zone data that the node computes with; empty: nobody knows',
  zones_from VARCHAR(64) NOT NULL DEFAULT '' COMMENT 'where that data is from, for people',
  PRIMARY KEY (id)
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

INSERT INTO locks (id, name) VALUES (0, 'session'); -- FOR UPDATE on a row that does not exist would exclude nobody

INSERT INTO setting (name, value) VALUES ('epoch', UUID()), ('mark', '0 0'); -- of the last two see sql.Watermark

CREATE TABLE figure (
  at     BIGINT     NOT NULL COMMENT 'when the ten seconds begin',
  source BINARY(16) NOT NULL COMMENT 'the process that counts: sessions come and go while it counts on',
  starts BIGINT     NOT NULL COMMENT 'attempts that began',
  ends   BIGINT     NOT NULL COMMENT 'attempts that had begun and are over',
  failed BIGINT     NOT NULL COMMENT 'those of them that did not succeed',
  late   VARCHAR(2048) NOT NULL COMMENT 'how late those that began were: a JSON array of [class, attempts], see job.LateClass',
  PRIMARY KEY (at, source)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What people allow, keep and bring.

CREATE TABLE api_token (
  id         BIGINT       NOT NULL AUTO_INCREMENT,
  name       VARCHAR(64)  NOT NULL COMMENT 'who holds it, as the audit says it',
  living     TINYINT      NULL DEFAULT 1 COMMENT '1, or NULL once revoked, so that the name is free again',
  hash       BINARY(32)   NOT NULL COMMENT 'SHA-256 of the token, of which there is no copy',
  role       VARCHAR(16)  NOT NULL,
  apps       MEDIUMTEXT   NULL     COMMENT 'JSON array: only in these; NULL: in all, and over what belongs to none',
  created    BIGINT       NOT NULL,
  created_by VARCHAR(128) NOT NULL,
  expires    BIGINT       NOT NULL DEFAULT 0 COMMENT '0: never',
  revoked    BIGINT       NOT NULL DEFAULT 0 COMMENT 'when it was, 0: it is not',
  used       BIGINT       NOT NULL DEFAULT 0 COMMENT 'when it was last used, to about a minute; 0: never',
  used_from  VARCHAR(64)  NOT NULL DEFAULT '' COMMENT 'and from which address',
  PRIMARY KEY (id),
  UNIQUE KEY hash (hash),
  UNIQUE KEY name (name, living)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- A row for each browser that is signed in; signing out deletes it.
CREATE TABLE login (
  id       BIGINT       NOT NULL AUTO_INCREMENT,
  hash     BINARY(32)   NOT NULL COMMENT 'SHA-256 of what its cookie holds',
  who      VARCHAR(128) NOT NULL,
  token_id BIGINT       NOT NULL DEFAULT 0 COMMENT 'the token it was made with, and which it may do no more than; 0: a provider vouched for who',
  grants   MEDIUMTEXT   NULL     COMMENT 'JSON array: what who may do; NULL: see the token',
  created  BIGINT       NOT NULL,
  expires  BIGINT       NOT NULL,
  origin   VARCHAR(64)  NOT NULL DEFAULT '',
  used     BIGINT       NOT NULL DEFAULT 0  COMMENT 'when it was last used, to about a minute; 0: never',
  used_from VARCHAR(64) NOT NULL DEFAULT '' COMMENT 'and from which address',
  checked  BIGINT       NOT NULL DEFAULT 0  COMMENT 'when the provider last said what who may do; 0: not since the sign-in',
  check_at BIGINT       NOT NULL DEFAULT 0  COMMENT 'when to ask the provider next, 0: never; whoever asks moves it on first',
  key_id   VARCHAR(16)  NOT NULL DEFAULT '' COMMENT 'which key sealed is sealed with',
  sealed   BLOB         NULL                COMMENT 'what the provider wants to see then: a refresh token; hash is authenticated with it',
  PRIMARY KEY (id),
  UNIQUE KEY hash (hash),
  KEY who (who),
  KEY token (token_id),
  KEY expires (expires),
  KEY check_at (check_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE secret (
  id      BIGINT       NOT NULL AUTO_INCREMENT,
  name    VARCHAR(128) NOT NULL,
  app     VARCHAR(128) NOT NULL DEFAULT '' COMMENT 'whose jobs may use it; empty: those of all apps',
  version BIGINT       NOT NULL COMMENT 'grows with each value, and begins where an earlier secret of the name has not been',
  key_id  VARCHAR(16)  NOT NULL COMMENT 'which key it is sealed with',
  sealed  MEDIUMBLOB   NOT NULL COMMENT 'AES-256-GCM: nonce, ciphertext and tag; name, app and version are authenticated with it',
  created BIGINT       NOT NULL,
  updated BIGINT       NOT NULL COMMENT 'when it got its value',
  who     VARCHAR(128) NOT NULL DEFAULT '' COMMENT 'who gave it that',
  PRIMARY KEY (id),
  UNIQUE KEY name_app (name, app)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE folder (
  id      BIGINT       NOT NULL AUTO_INCREMENT,
  name    VARCHAR(255) NOT NULL COMMENT 'its path, the same on all nodes that follow it',
  digest  CHAR(32)     NOT NULL DEFAULT '' COMMENT 'of what was applied last; empty: nothing yet',
  past    TEXT         NOT NULL COMMENT 'digests of what was applied before that, the latest first, separated by spaces',
  applied BIGINT       NOT NULL DEFAULT 0,
  node    VARCHAR(128) NOT NULL DEFAULT '' COMMENT 'which applied it',
  PRIMARY KEY (id),
  UNIQUE KEY name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE folder_node (
  folder_id BIGINT       NOT NULL,
  node      VARCHAR(128) NOT NULL,
  digest    CHAR(32)     NOT NULL DEFAULT '' COMMENT 'of what its folder holds',
  held      CHAR(32)     NOT NULL DEFAULT '' COMMENT 'of what its folder held when that was what is applied; differs from digest once the folder has moved on, or is behind',
  state     VARCHAR(16)  NOT NULL COMMENT 'applied, behind or refused',
  error     TEXT         NOT NULL COMMENT 'why it was refused',
  since     BIGINT       NOT NULL COMMENT 'of the state and the error',
  PRIMARY KEY (folder_id, node)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Rules of apps, and, with an empty name, of the whole cluster. Those of jobs stand in their definitions.
CREATE TABLE retention (
  app     VARCHAR(128) NOT NULL,
  spec    TEXT         NOT NULL COMMENT 'the rule as JSON, see job.Retention',
  who     VARCHAR(128) NOT NULL DEFAULT '',
  updated BIGINT       NOT NULL DEFAULT 0,
  PRIMARY KEY (app)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

INSERT INTO retention (app, spec) VALUES ('', '{"age":"2160h0m0s","failures":"8760h0m0s"}');

-- What one node at a time does for all.
CREATE TABLE chore (
  name       VARCHAR(32)  NOT NULL,
  session_id BINARY(16)   NULL     COMMENT 'who does it',
  until      BIGINT       NOT NULL DEFAULT 0 COMMENT 'and until when nobody else begins',
  at_id      BIGINT       NOT NULL DEFAULT 0 COMMENT 'how far it is',
  ended      BIGINT       NOT NULL DEFAULT 0 COMMENT 'when it was through with everything last',
  removed    BIGINT       NOT NULL DEFAULT 0 COMMENT 'records, in all',
  archived   BIGINT       NOT NULL DEFAULT 0 COMMENT 'records that were handed over before, in all; some more than once',
  failures   BIGINT       NOT NULL DEFAULT 0 COMMENT 'of handing over, in a row',
  error      VARCHAR(512) NOT NULL DEFAULT '' COMMENT 'of the last of these',
  error_at   BIGINT       NOT NULL DEFAULT 0,
  PRIMARY KEY (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
INSERT INTO chore (name) VALUES ('retention'), ('output');

CREATE TABLE app_limit (
  app             VARCHAR(128) NOT NULL,
  jobs            BIGINT       NULL COMMENT 'living jobs; NULL, here and in the next three: no limit',
  runs_per_minute BIGINT       NULL COMMENT 'starts in 60 seconds',
  waiting         BIGINT       NULL COMMENT 'runs in state waiting',
  output          BIGINT       NULL COMMENT 'bytes of kept output',
  taken           BIGINT       NOT NULL DEFAULT 0  COMMENT 'written by whoever counts against a limit, so that such changes exclude each other',
  who             VARCHAR(128) NOT NULL DEFAULT '',
  updated         BIGINT       NOT NULL DEFAULT 0,
  PRIMARY KEY (app)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Starts of apps that have a limit of them, for a minute or two. Each session writes its own rows and no others.
CREATE TABLE app_start (
  app        VARCHAR(128) NOT NULL,
  at         BIGINT       NOT NULL COMMENT 'second since 1970',
  session_id BINARY(16)   NOT NULL COMMENT 'who started them; zero: runs that people asked for, counted as they asked',
  starts     BIGINT       NOT NULL,
  PRIMARY KEY (app, at, session_id),
  KEY at (at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- The kept output of apps that have a limit of it, see trip/kept.go. Row 0 says up to which row of `ending` runs are counted.
CREATE TABLE app_output (
  app_id INT    NOT NULL,
  count  BIGINT NOT NULL DEFAULT 0 COMMENT 'which count this is: when it began',
  bytes  BIGINT NOT NULL DEFAULT 0 COMMENT 'run.output_kept of the runs that it counts',
  upto   BIGINT NOT NULL DEFAULT 0 COMMENT 'no run that it counts is due before. Row 0: an id in ending',
  seen   BIGINT NULL DEFAULT 0 COMMENT 'runs that were there when it began are counted if they are due before; NULL: all are',
  PRIMARY KEY (app_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE audit_chain (
  seq  BIGINT     NOT NULL COMMENT 'from 1, without a gap',
  line BIGINT     NOT NULL COMMENT 'id of the audit line',
  at   BIGINT     NOT NULL COMMENT 'when that line was written',
  hash BINARY(32) NOT NULL COMMENT 'that time, then 24 bytes of the SHA-256 of the hash before and of the line',
  PRIMARY KEY (seq),
  UNIQUE KEY line (line)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Alerts.

CREATE TABLE alert_channel (
  id      BIGINT       NOT NULL AUTO_INCREMENT,
  name    VARCHAR(128) NOT NULL,
  version BIGINT       NOT NULL DEFAULT 1,
  spec    MEDIUMTEXT   NOT NULL          COMMENT 'the definition as JSON; secrets stand in it by their names',
  created BIGINT       NOT NULL,
  updated BIGINT       NOT NULL,
  who     VARCHAR(128) NOT NULL DEFAULT '' COMMENT 'who gave it this definition',
  window_at BIGINT     NOT NULL DEFAULT 0 COMMENT 'begin of the minute in which messages are counted',
  window_sent INT      NOT NULL DEFAULT 0 COMMENT 'messages in it, tries included',
  beat_at BIGINT       NOT NULL DEFAULT 0 COMMENT 'of a heartbeat: when it was last looked at',
  held    VARCHAR(512) NOT NULL DEFAULT '' COMMENT 'of a heartbeat: why the last one was not sent',
  PRIMARY KEY (id),
  UNIQUE KEY name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE alert_rule (
  id      BIGINT       NOT NULL AUTO_INCREMENT,
  name    VARCHAR(128) NOT NULL,
  version BIGINT       NOT NULL DEFAULT 1,
  spec    MEDIUMTEXT   NOT NULL          COMMENT 'the definition as JSON',
  created BIGINT       NOT NULL,
  updated BIGINT       NOT NULL,
  who     VARCHAR(128) NOT NULL DEFAULT '',
  PRIMARY KEY (id),
  UNIQUE KEY name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE alert_silence (
  id      BIGINT       NOT NULL AUTO_INCREMENT,
  app     VARCHAR(128) NOT NULL DEFAULT '' COMMENT 'only what belongs to this app; empty: all, and what belongs to none',
  job     VARCHAR(128) NOT NULL DEFAULT '' COMMENT 'only this job of the app',
  rule    VARCHAR(128) NOT NULL DEFAULT '' COMMENT 'only what this rule finds',
  until   BIGINT       NOT NULL,
  reason  VARCHAR(512) NOT NULL,
  who     VARCHAR(128) NOT NULL DEFAULT '',
  created BIGINT       NOT NULL,
  PRIMARY KEY (id),
  KEY until (until)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- A row for each trouble: it fires once, however often it is seen again until it is over.
CREATE TABLE alert (
  id       BIGINT       NOT NULL AUTO_INCREMENT,
  subject  BINARY(16)   NOT NULL          COMMENT 'hash of the rule, the event, and what it is about',
  firing   TINYINT      NULL DEFAULT 1    COMMENT '1, or NULL once it is over',
  rule_id  BIGINT       NOT NULL,
  rule     VARCHAR(128) NOT NULL,
  event    VARCHAR(16)  NOT NULL,
  severity VARCHAR(16)  NOT NULL,
  app      VARCHAR(128) NOT NULL DEFAULT '',
  job_id   BIGINT       NOT NULL DEFAULT 0,
  job      VARCHAR(128) NOT NULL DEFAULT '',
  owner    VARCHAR(1024) NOT NULL DEFAULT '' COMMENT 'of the job',
  node     VARCHAR(128) NOT NULL DEFAULT '',
  run      VARCHAR(64)  NOT NULL DEFAULT '' COMMENT 'the run that was seen last',
  summary  VARCHAR(1024) NOT NULL,
  first_at BIGINT       NOT NULL,
  last_at  BIGINT       NOT NULL,
  seen     BIGINT       NOT NULL DEFAULT 1 COMMENT 'how often',
  told_at  BIGINT       NOT NULL DEFAULT 0 COMMENT 'when a message about it was last made; 0: none was',
  silence_id BIGINT     NOT NULL DEFAULT 0 COMMENT 'the silence that kept it from being told; 0: none does',
  over_at  BIGINT       NOT NULL DEFAULT 0,
  over_why VARCHAR(512) NOT NULL DEFAULT '',
  PRIMARY KEY (id),
  UNIQUE KEY subject (subject, firing),
  KEY firing (firing, id),
  KEY app (app, id),
  KEY job (job_id, id),
  KEY over_at (over_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- A row for each message.
CREATE TABLE delivery (
  id         BIGINT       NOT NULL AUTO_INCREMENT,
  idem       BINARY(16)   NOT NULL          COMMENT 'the key by which whoever gets it twice can tell',
  kind       VARCHAR(16)  NOT NULL          COMMENT 'alert, test, ping or heartbeat',
  channel_id BIGINT       NOT NULL DEFAULT 0 COMMENT '0: it is the ping of a job',
  channel    VARCHAR(128) NOT NULL DEFAULT '',
  rule_id    BIGINT       NOT NULL DEFAULT 0,
  rule       VARCHAR(128) NOT NULL DEFAULT '',
  target     VARCHAR(320) NOT NULL DEFAULT '' COMMENT 'to whom, where the channel does not say',
  job_id     BIGINT       NOT NULL DEFAULT 0 COMMENT 'of a ping',
  state      TINYINT      NOT NULL COMMENT '0 pending 1 sending 2 sent 3 failed 4 silenced 5 suppressed',
  attempts   INT          NOT NULL DEFAULT 0,
  next_at    BIGINT       NOT NULL COMMENT 'when it is to be sent; while it is being sent, when it is free again',
  session_id BINARY(16)   NULL COMMENT 'who sends it',
  events     BIGINT       NOT NULL DEFAULT 1 COMMENT 'how many it tells of',
  items      MEDIUMTEXT   NOT NULL COMMENT 'the first of them, as JSON',
  said       VARCHAR(512) NOT NULL DEFAULT '' COMMENT 'what the channel answered, or why it failed',
  created    BIGINT       NOT NULL,
  updated    BIGINT       NOT NULL,
  PRIMARY KEY (id),
  KEY due (state, next_at),
  KEY grp (channel_id, state, rule_id),
  KEY job (job_id, state),
  KEY created (created),
  KEY kind (kind, created)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- When what is counted by a rule failed last.
CREATE TABLE alert_streak (
  rule_id BIGINT     NOT NULL,
  subject BINARY(16) NOT NULL,
  times   TEXT       NOT NULL COMMENT 'the latest failures, as JSON',
  updated BIGINT     NOT NULL,
  PRIMARY KEY (subject),
  KEY updated (updated)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Two rows. 1: who looks for what is to be told, and how far it has come. 2: n counts changes of the definitions.
CREATE TABLE alert_work (
  id       INT        NOT NULL,
  n        BIGINT     NOT NULL DEFAULT 0 COMMENT 'written by each step, which holds only if nobody else took one',
  holder   BINARY(16) NULL,
  until    BIGINT     NOT NULL DEFAULT 0,
  position MEDIUMTEXT NULL,
  lost     BIGINT     NOT NULL DEFAULT 0 COMMENT 'what could not be told, because there was too much of it',
  template_failures BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

INSERT INTO alert_work (id) VALUES (1), (2);

-- For people.

CREATE VIEW v_job AS
  SELECT j.id, a.name AS app, j.name, j.version, j.paused, j.living IS NULL AS deleted,
         TIMESTAMPADD(MICROSECOND, j.next_due, '1970-01-01') AS next_due,
         TIMESTAMPADD(MICROSECOND, NULLIF(j.begun_to, 0), '1970-01-01') AS begun_to, j.error, v.definition
  FROM job j JOIN app a ON a.id = j.app_id LEFT JOIN job_version v ON v.job_id = j.id AND v.version = j.version;

CREATE VIEW v_run AS
  SELECT r.id, a.name AS app, j.name AS job, TIMESTAMPADD(MICROSECOND, r.due, '1970-01-01') AS due, r.kind, r.request, r.attempt, r.state,
         r.claim, r.owner, r.outcome, r.final, r.reason_code, r.reason, r.exit_code, r.due_count,
         TIMESTAMPADD(MICROSECOND, NULLIF(r.started, 0), '1970-01-01') AS started,
         TIMESTAMPADD(MICROSECOND, NULLIF(r.ended, 0), '1970-01-01') AS ended, l.node
  FROM run r JOIN job j ON j.id = r.job_id JOIN app a ON a.id = r.app_id
  LEFT JOIN life l ON l.id = IF(r.session > 0, r.session, r.owner);

CREATE VIEW v_session AS
  SELECT LOWER(HEX(id)) AS id, node, address, pid, version, TIMESTAMPADD(MICROSECOND, started, '1970-01-01') AS started,
         beat, TIMESTAMPADD(MICROSECOND, beat_at, '1970-01-01') AS beat_at, draining, prepared, executing, slots
  FROM session;

CREATE VIEW v_api_token AS
  SELECT id, name, role, apps, created_by, TIMESTAMPADD(MICROSECOND, created, '1970-01-01') AS created,
         TIMESTAMPADD(MICROSECOND, NULLIF(expires, 0), '1970-01-01') AS expires,
         TIMESTAMPADD(MICROSECOND, NULLIF(revoked, 0), '1970-01-01') AS revoked,
         TIMESTAMPADD(MICROSECOND, NULLIF(used, 0), '1970-01-01') AS used, used_from
  FROM api_token;

CREATE VIEW v_alert AS
  SELECT id, firing IS NOT NULL AS firing, rule, event, severity, app, job, node, summary,
         TIMESTAMPADD(MICROSECOND, first_at, '1970-01-01') AS first_at, TIMESTAMPADD(MICROSECOND, last_at, '1970-01-01') AS last_at, seen,
         TIMESTAMPADD(MICROSECOND, NULLIF(over_at, 0), '1970-01-01') AS over_at, over_why
  FROM alert;

CREATE VIEW v_delivery AS
  SELECT id, LOWER(HEX(idem)) AS idem, kind, channel, rule, target,
         ELT(state + 1, 'pending', 'sending', 'sent', 'failed', 'silenced', 'suppressed') AS state, attempts, events, said,
         TIMESTAMPADD(MICROSECOND, created, '1970-01-01') AS created, TIMESTAMPADD(MICROSECOND, updated, '1970-01-01') AS updated
  FROM delivery;
