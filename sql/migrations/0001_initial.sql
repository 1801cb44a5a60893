-- The tables of a cluster. Times are BIGINT microseconds since 1970 UTC by MySQL's clock; the views
-- at the end show them as text. There are no foreign keys: one transaction writes and removes the
-- rows that belong together.

-- +goose Up

-- The trip of a run.

CREATE TABLE job (
  id       BIGINT       NOT NULL AUTO_INCREMENT,
  app_id   INT          NOT NULL,
  name     VARCHAR(128) NOT NULL,
  living   TINYINT      NULL DEFAULT 1      COMMENT '1, or NULL once deleted: the name is free again',
  hash     SMALLINT     NOT NULL            COMMENT '0..1023; a bucket is a range of hashes',
  version  INT          NOT NULL DEFAULT 1  COMMENT 'current definition: a row of job_version',
  paused   TINYINT      NOT NULL DEFAULT 0,
  crowded  TINYINT      NOT NULL DEFAULT 0  COMMENT '1: runs that began under overlap allow may still execute',
  next_due BIGINT       NULL                COMMENT 'the cursor: first due time without a run; NULL: none',
  begun_to BIGINT       NOT NULL DEFAULT 0  COMMENT 'latest due time of the schedule whose run has begun or ended; only grows',
  running  BIGINT       NOT NULL DEFAULT 0  COMMENT 'the run that excludes others: executing, woken or waiting for a slot; may have ended since',
  changes  INT          NOT NULL DEFAULT 1  COMMENT 'number of changes by people; with version it forms the ETag',
  parked   BIGINT       NULL                COMMENT 'the cursor while paused; next_due is then the end of the pause; NULL: none',
  resumed  BIGINT       NOT NULL DEFAULT 0  COMMENT 'end of its last pause: the misfire policy handles earlier due times',
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
  definition MEDIUMTEXT NOT NULL COMMENT 'JSON; immutable',
  calendars  TEXT       NULL     COMMENT 'SHA-256 of each calendar in the definition, in hex, in the same order',
  who        VARCHAR(128) NOT NULL DEFAULT '' COMMENT 'author of the version',
  created    BIGINT     NOT NULL,
  PRIMARY KEY (job_id, version)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE run (
  id        BIGINT   NOT NULL COMMENT 'session number of its creator, and a counter',
  job_id    BIGINT   NOT NULL,
  app_id    INT      NOT NULL,
  version   INT      NOT NULL DEFAULT 0 COMMENT 'version of the definition when it began',
  due       BIGINT   NOT NULL,
  kind      ENUM('schedule','manual','backfill') NOT NULL,
  request   BIGINT   NOT NULL DEFAULT 0 COMMENT 'row of request that asked for it; 0: the schedule',
  attempt   SMALLINT NOT NULL DEFAULT 1,
  state     ENUM('idle','prepared','executing','waiting','ended') NOT NULL,
  owner     INT      NOT NULL COMMENT 'number of a session; 0 idle, -1 waiting, -2 ended',
  claim     INT      NOT NULL COMMENT 'number of claims; with id the fencing token',
  due_now   BIGINT   NOT NULL COMMENT 'due, or later after a retry or a wait; while it waits, its place in the queue',
  hash      SMALLINT NOT NULL,
  wish      ENUM('kill','replace') NULL COMMENT 'kill: requested by a person; replace: a later due time takes its place',
  grp       INT      NOT NULL DEFAULT 0 COMMENT 'executing: group whose slot it holds; idle: negative, woken for a slot of that group',
  awaited   TINYINT  NOT NULL DEFAULT 0 COMMENT '1: a run may wait for the end of this one',
  session   INT      NOT NULL DEFAULT 0 COMMENT 'the session that started or ended it',
  started   BIGINT   NOT NULL DEFAULT 0,
  spawn_by  BIGINT   NOT NULL DEFAULT 0 COMMENT 'no command may be spawned for it after this instant',
  ended     BIGINT   NOT NULL DEFAULT 0,
  outcome   ENUM('succeeded','failed','timed_out','killed','lost','skipped','missed','superseded','none') NOT NULL DEFAULT 'none',
  final     TINYINT  NOT NULL DEFAULT 0 COMMENT '1: no attempt follows',
  exit_code SMALLINT NOT NULL DEFAULT -1 COMMENT '-1: none; from 1000 on, 1000 and an HTTP status',
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
  taken INT          NOT NULL DEFAULT 0 COMMENT 'slots in use: number of executing runs with run.grp = id',
  created BIGINT     NOT NULL DEFAULT 0,
  updated BIGINT     NOT NULL DEFAULT 0 COMMENT 'last change of slots',
  PRIMARY KEY (id),
  UNIQUE KEY name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE stop (
  kind   ENUM('cluster','app','handler','restored') NOT NULL COMMENT 'scope in which no run starts',
  name   VARCHAR(128) NOT NULL DEFAULT '' COMMENT 'name of the app or handler',
  app_id INT          NOT NULL DEFAULT 0,
  since  BIGINT       NOT NULL,
  until  BIGINT       NOT NULL DEFAULT 0 COMMENT 'automatic end; 0: none; restored: earlier due times are not started',
  who    VARCHAR(128) NOT NULL DEFAULT '',
  reason VARCHAR(512) NOT NULL DEFAULT '',
  PRIMARY KEY (kind, name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE output (
  run_id BIGINT     NOT NULL,
  head   MEDIUMBLOB NOT NULL,
  tail   MEDIUMBLOB NOT NULL,
  encoding TINYINT  NOT NULL DEFAULT 0 COMMENT 'of head and tail: 0 plain, 1 DEFLATE',
  counted  BIGINT   NOT NULL DEFAULT 0 COMMENT 'app_output.count of the count that includes it; 0: none',
  parts    SMALLINT NOT NULL DEFAULT 0 COMMENT 'rows of output_part that its node writes after the end',
  extra    MEDIUMBLOB NULL COMMENT 'JSON: line ends, stamps, the HTTP response',
  PRIMARY KEY (run_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What is kept of a large output between head and tail. Some parts may be missing.
CREATE TABLE output_part (
  run_id  BIGINT     NOT NULL,
  at_byte BIGINT     NOT NULL COMMENT 'its offset in the output',
  size    INT        NOT NULL COMMENT 'bytes, uncompressed',
  line    BIGINT     NOT NULL COMMENT 'line ends before it',
  encoding TINYINT   NOT NULL DEFAULT 0 COMMENT 'of data: 0 plain, 1 DEFLATE',
  data    MEDIUMBLOB NOT NULL,
  PRIMARY KEY (run_id, at_byte)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE life (
  id      INT          NOT NULL AUTO_INCREMENT COMMENT 'the session number in runs; never reused',
  session BINARY(16)   NOT NULL,
  node    VARCHAR(128) NOT NULL,
  started BIGINT       NOT NULL,
  gone    BIGINT       NULL COMMENT 'time when it left or was buried',
  PRIMARY KEY (id),
  UNIQUE KEY session (session)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What people set for jobs.

CREATE TABLE app (
  id   INT          NOT NULL AUTO_INCREMENT,
  name VARCHAR(128) NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE job_pause (
  job_id BIGINT       NOT NULL,
  since  BIGINT       NOT NULL,
  until  BIGINT       NOT NULL DEFAULT 0 COMMENT 'automatic end; 0: none',
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
  id       BIGINT         NOT NULL AUTO_INCREMENT COMMENT 'equals run.request of its runs',
  kind     VARCHAR(32)    NOT NULL,
  idem_key VARBINARY(255) NULL COMMENT 'Idempotency-Key of the client',
  job_id   BIGINT         NOT NULL,
  digest   BINARY(32)     NOT NULL COMMENT 'of the request, to detect a key that is reused for a different one',
  created  BIGINT         NOT NULL,
  status   SMALLINT       NOT NULL DEFAULT 0 COMMENT 'HTTP status of the answer; 0: not answered yet, or the node died before',
  header   VARCHAR(1024)  NOT NULL DEFAULT '' COMMENT 'headers of the answer, as JSON',
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
  timezone VARCHAR(64)  NOT NULL DEFAULT '' COMMENT 'copied from the definition for lists, like the next two columns',
  excludes INT          NOT NULL DEFAULT 0,
  includes INT          NOT NULL DEFAULT 0,
  named    BIGINT       NOT NULL DEFAULT 0 COMMENT 'written by each change of a job that uses it, so that the changes of calendar and job exclude each other',
  created  BIGINT       NOT NULL,
  updated  BIGINT       NOT NULL,
  PRIMARY KEY (id),
  UNIQUE KEY name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE audit (
  id      BIGINT       NOT NULL AUTO_INCREMENT,
  at      BIGINT       NOT NULL,
  who     VARCHAR(128) NOT NULL COMMENT 'a person, a token, or a node',
  origin  VARCHAR(64)  NOT NULL DEFAULT '' COMMENT 'address of the request',
  action  VARCHAR(32)  NOT NULL,
  kind    VARCHAR(16)  NOT NULL COMMENT 'kind of the changed object',
  ref     BIGINT       NOT NULL DEFAULT 0 COMMENT 'id of the object, if any',
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
  id       BIGINT       NOT NULL COMMENT 'id of its request; equals run.request of its runs',
  job_id   BIGINT       NOT NULL,
  first    BIGINT       NOT NULL COMMENT 'first due time',
  last     BIGINT       NOT NULL COMMENT 'last due time, included',
  next_due BIGINT       NULL     COMMENT 'the cursor: first due time without a run; NULL: none left',
  done_to  BIGINT       NOT NULL COMMENT 'all due times up to here have ended',
  parallel INT          NOT NULL COMMENT 'most live runs at a time',
  missing  TINYINT      NOT NULL DEFAULT 0 COMMENT '1: leave out due times that have a succeeded run',
  total    BIGINT       NOT NULL COMMENT 'number of due times',
  planned  BIGINT       NOT NULL DEFAULT 0 COMMENT 'due times that have or had a run',
  left_out BIGINT       NOT NULL DEFAULT 0 COMMENT 'due times left out because they had succeeded',
  state    ENUM('running','done','cancelled') NOT NULL,
  who      VARCHAR(128) NOT NULL DEFAULT '',
  created  BIGINT       NOT NULL,
  updated  BIGINT       NOT NULL,
  PRIMARY KEY (id),
  KEY job (job_id),
  KEY state (state)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Indexes for finding runs and jobs. The trip of a run does not read them.

CREATE TABLE notable (
  outcome ENUM('succeeded','failed','timed_out','killed','lost','skipped','missed','superseded') NOT NULL,
  due     BIGINT NOT NULL,
  run_id  BIGINT NOT NULL COMMENT 'a run that ended without success',
  app_id  INT    NOT NULL,
  job_id  BIGINT NOT NULL,
  PRIMARY KEY (outcome, due, run_id),
  KEY by_app (app_id, outcome, due),
  KEY by_job (job_id, outcome, due)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE ending (
  id   BIGINT     NOT NULL AUTO_INCREMENT,
  at   BIGINT     NOT NULL,
  runs MEDIUMBLOB NOT NULL COMMENT 'the runs that a transaction ended, see note.go',
  PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE job_term (
  term   BINARY(16) NOT NULL COMMENT 'truncated SHA-256 of an owner, label, group or calendar',
  job_id BIGINT     NOT NULL COMMENT 'a living job',
  PRIMARY KEY (term, job_id),
  KEY job (job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE job_part (
  part   VARCHAR(32)      NOT NULL COMMENT 'a suffix of the name of a living job',
  job_id BIGINT           NOT NULL,
  pos    TINYINT UNSIGNED NOT NULL COMMENT 'position of its first character, from 0',
  PRIMARY KEY (part, job_id, pos),
  KEY job (job_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE chunk (
  run_id  BIGINT     NOT NULL,
  claim   INT        NOT NULL,
  at_byte BIGINT     NOT NULL COMMENT 'its offset in the output',
  line    BIGINT     NOT NULL DEFAULT 0 COMMENT 'line ends before it',
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
  handlers  TEXT         NULL COMMENT 'JSON array: keys of its handlers',
  cordon_seen BIGINT     NOT NULL DEFAULT 0 COMMENT 'node.since of the cordon that it obeys: it holds nothing prepared and starts nothing',
  zones      VARCHAR(32) NOT NULL DEFAULT '' COMMENT 'fingerprint of the node time zone data; empty: unknown',
  zones_from VARCHAR(64) NOT NULL DEFAULT '' COMMENT 'source of that data, for people',
  PRIMARY KEY (id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What people set for nodes. Keyed by name, so it outlives sessions.
CREATE TABLE node (
  name     VARCHAR(128) NOT NULL,
  cordoned TINYINT      NOT NULL DEFAULT 0 COMMENT 'takes no new work',
  draining TINYINT      NOT NULL DEFAULT 0 COMMENT 'a person waits until it has no work',
  reason   VARCHAR(512) NOT NULL DEFAULT '',
  who      VARCHAR(128) NOT NULL DEFAULT '',
  since    BIGINT       NOT NULL DEFAULT 0,
  PRIMARY KEY (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- What nodes see that others cannot.
CREATE TABLE node_note (
  node    VARCHAR(128) NOT NULL,
  what    VARCHAR(16)  NOT NULL COMMENT 'certificate or oidc',
  expires BIGINT       NOT NULL DEFAULT 0 COMMENT 'end of its TLS certificate; 0: another note',
  error   VARCHAR(512) NOT NULL DEFAULT '' COMMENT 'reason why it cannot reach the OIDC issuer; empty: it can',
  since   BIGINT       NOT NULL COMMENT 'start of this state',
  PRIMARY KEY (node, what)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE locks (
  id   INT         NOT NULL COMMENT 'locks are taken in ascending order',
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

INSERT INTO locks (id, name) VALUES (0, 'session'); -- FOR UPDATE on a missing row would not exclude others

INSERT INTO setting (name, value) VALUES ('epoch', UUID()), ('mark', '0 0'); -- see sql.Watermark

CREATE TABLE figure (
  at     BIGINT     NOT NULL COMMENT 'start of the ten seconds',
  source BINARY(16) NOT NULL COMMENT 'the counting process, which outlives its sessions',
  starts BIGINT     NOT NULL COMMENT 'attempts that began',
  ends   BIGINT     NOT NULL COMMENT 'started attempts that ended',
  failed BIGINT     NOT NULL COMMENT 'started attempts that ended without success',
  late   VARCHAR(2048) NOT NULL COMMENT 'lateness of the starts: a JSON array of [class, attempts], see job.LateClass',
  PRIMARY KEY (at, source)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Access, secrets, folders, retention and limits.

CREATE TABLE api_token (
  id         BIGINT       NOT NULL AUTO_INCREMENT,
  name       VARCHAR(64)  NOT NULL COMMENT 'its holder, as named in the audit',
  living     TINYINT      NULL DEFAULT 1 COMMENT '1, or NULL once revoked: the name is free again',
  hash       BINARY(32)   NOT NULL COMMENT 'SHA-256 of the token, which is not stored',
  role       VARCHAR(16)  NOT NULL,
  apps       MEDIUMTEXT   NULL     COMMENT 'JSON array of apps; NULL: all apps, and objects outside apps',
  created    BIGINT       NOT NULL,
  created_by VARCHAR(128) NOT NULL,
  expires    BIGINT       NOT NULL DEFAULT 0 COMMENT '0: never',
  revoked    BIGINT       NOT NULL DEFAULT 0 COMMENT 'time of the revocation; 0: not revoked',
  used       BIGINT       NOT NULL DEFAULT 0 COMMENT 'last use, to about a minute; 0: never',
  used_from  VARCHAR(64)  NOT NULL DEFAULT '' COMMENT 'address of the last use',
  PRIMARY KEY (id),
  UNIQUE KEY hash (hash),
  UNIQUE KEY name (name, living)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- One row per signed-in browser; signing out deletes it.
CREATE TABLE login (
  id       BIGINT       NOT NULL AUTO_INCREMENT,
  hash     BINARY(32)   NOT NULL COMMENT 'SHA-256 of its cookie value',
  who      VARCHAR(128) NOT NULL,
  token_id BIGINT       NOT NULL DEFAULT 0 COMMENT 'token of the sign-in, which limits its rights; 0: signed in through a provider',
  grants   MEDIUMTEXT   NULL     COMMENT 'JSON array of rights; NULL: the rights of the token',
  created  BIGINT       NOT NULL,
  expires  BIGINT       NOT NULL,
  origin   VARCHAR(64)  NOT NULL DEFAULT '',
  used     BIGINT       NOT NULL DEFAULT 0  COMMENT 'last use, to about a minute; 0: never',
  used_from VARCHAR(64) NOT NULL DEFAULT '' COMMENT 'address of the last use',
  checked  BIGINT       NOT NULL DEFAULT 0  COMMENT 'last answer of the provider about the rights; 0: only at the sign-in',
  check_at BIGINT       NOT NULL DEFAULT 0  COMMENT 'next question to the provider; 0: never; moved on before asking',
  key_id   VARCHAR(16)  NOT NULL DEFAULT '' COMMENT 'key of sealed',
  sealed   BLOB         NULL                COMMENT 'refresh token for the provider; authenticated together with hash',
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
  app     VARCHAR(128) NOT NULL DEFAULT '' COMMENT 'app whose jobs may use it; empty: all apps',
  version BIGINT       NOT NULL COMMENT 'grows with each value, and starts above earlier secrets of the same name',
  key_id  VARCHAR(16)  NOT NULL COMMENT 'key of sealed',
  sealed  MEDIUMBLOB   NOT NULL COMMENT 'AES-256-GCM: nonce, ciphertext and tag; authenticates name, app and version too',
  created BIGINT       NOT NULL,
  updated BIGINT       NOT NULL COMMENT 'last change of the value',
  who     VARCHAR(128) NOT NULL DEFAULT '' COMMENT 'author of that change',
  PRIMARY KEY (id),
  UNIQUE KEY name_app (name, app)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE folder (
  id      BIGINT       NOT NULL AUTO_INCREMENT,
  name    VARCHAR(255) NOT NULL COMMENT 'its path, equal on all nodes that follow it',
  digest  CHAR(32)     NOT NULL DEFAULT '' COMMENT 'digest of the content applied last; empty: nothing yet',
  past    TEXT         NOT NULL COMMENT 'digests applied before, latest first, separated by spaces',
  applied BIGINT       NOT NULL DEFAULT 0,
  node    VARCHAR(128) NOT NULL DEFAULT '' COMMENT 'node that applied it',
  PRIMARY KEY (id),
  UNIQUE KEY name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE folder_node (
  folder_id BIGINT       NOT NULL,
  node      VARCHAR(128) NOT NULL,
  digest    CHAR(32)     NOT NULL DEFAULT '' COMMENT 'digest of its folder',
  held      CHAR(32)     NOT NULL DEFAULT '' COMMENT 'digest of its folder when it last equalled the applied content',
  state     VARCHAR(16)  NOT NULL COMMENT 'applied, behind or refused',
  error     TEXT         NOT NULL COMMENT 'reason of a refusal',
  since     BIGINT       NOT NULL COMMENT 'start of this state and error',
  PRIMARY KEY (folder_id, node)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Retention rules of apps; an empty name means the whole cluster. Rules of jobs are in their definitions.
CREATE TABLE retention (
  app     VARCHAR(128) NOT NULL,
  spec    TEXT         NOT NULL COMMENT 'the rule as JSON, see job.Retention',
  who     VARCHAR(128) NOT NULL DEFAULT '',
  updated BIGINT       NOT NULL DEFAULT 0,
  PRIMARY KEY (app)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

INSERT INTO retention (app, spec) VALUES ('', '{"age":"2160h0m0s","failures":"8760h0m0s"}');

-- Work that one node at a time does for all.
CREATE TABLE chore (
  name       VARCHAR(32)  NOT NULL,
  session_id BINARY(16)   NULL     COMMENT 'session that does it',
  until      BIGINT       NOT NULL DEFAULT 0 COMMENT 'end of its lease: no other node begins before',
  at_id      BIGINT       NOT NULL DEFAULT 0 COMMENT 'its position',
  ended      BIGINT       NOT NULL DEFAULT 0 COMMENT 'end of the last complete pass',
  removed    BIGINT       NOT NULL DEFAULT 0 COMMENT 'records removed in total',
  archived   BIGINT       NOT NULL DEFAULT 0 COMMENT 'records archived in total, repeats included',
  failures   BIGINT       NOT NULL DEFAULT 0 COMMENT 'consecutive failures to archive',
  error      VARCHAR(512) NOT NULL DEFAULT '' COMMENT 'error of the last failure',
  error_at   BIGINT       NOT NULL DEFAULT 0,
  PRIMARY KEY (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;
INSERT INTO chore (name) VALUES ('retention'), ('output');

CREATE TABLE app_limit (
  app             VARCHAR(128) NOT NULL,
  jobs            BIGINT       NULL COMMENT 'living jobs; NULL, here and in the next three columns: no limit',
  runs_per_minute BIGINT       NULL COMMENT 'starts in 60 seconds',
  waiting         BIGINT       NULL COMMENT 'runs in state waiting',
  output          BIGINT       NULL COMMENT 'bytes of kept output',
  taken           BIGINT       NOT NULL DEFAULT 0  COMMENT 'written before counting against a limit, so that such changes exclude each other',
  who             VARCHAR(128) NOT NULL DEFAULT '',
  updated         BIGINT       NOT NULL DEFAULT 0,
  PRIMARY KEY (app)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Starts of apps with a limit on runs_per_minute, kept for a minute or two. Each session writes only its own rows.
CREATE TABLE app_start (
  app        VARCHAR(128) NOT NULL,
  at         BIGINT       NOT NULL COMMENT 'second since 1970',
  session_id BINARY(16)   NOT NULL COMMENT 'session that started them; zero: runs requested by people, counted at the request',
  starts     BIGINT       NOT NULL,
  PRIMARY KEY (app, at, session_id),
  KEY at (at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Kept output of apps with a limit on output, see trip/kept.go. Row 0 holds the last row of `ending` whose runs are counted.
CREATE TABLE app_output (
  app_id INT    NOT NULL,
  count  BIGINT NOT NULL DEFAULT 0 COMMENT 'identifies the count: its start time',
  bytes  BIGINT NOT NULL DEFAULT 0 COMMENT 'sum of run.output_kept of the counted runs',
  upto   BIGINT NOT NULL DEFAULT 0 COMMENT 'every counted run is due here or later. Row 0: an id in ending',
  seen   BIGINT NULL DEFAULT 0 COMMENT 'of the runs older than the count, only runs due before this are counted; NULL: all',
  PRIMARY KEY (app_id)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE TABLE audit_chain (
  seq  BIGINT     NOT NULL COMMENT 'from 1, without a gap',
  line BIGINT     NOT NULL COMMENT 'id of the audit line',
  at   BIGINT     NOT NULL COMMENT 'time of that line',
  hash BINARY(32) NOT NULL COMMENT 'that time, then 24 bytes of the SHA-256 of the previous hash and the line',
  PRIMARY KEY (seq),
  UNIQUE KEY line (line)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Alerts.

CREATE TABLE alert_channel (
  id      BIGINT       NOT NULL AUTO_INCREMENT,
  name    VARCHAR(128) NOT NULL,
  version BIGINT       NOT NULL DEFAULT 1,
  spec    MEDIUMTEXT   NOT NULL          COMMENT 'the definition as JSON; contains the names of secrets, not their values',
  created BIGINT       NOT NULL,
  updated BIGINT       NOT NULL,
  who     VARCHAR(128) NOT NULL DEFAULT '' COMMENT 'author of this definition',
  window_at BIGINT     NOT NULL DEFAULT 0 COMMENT 'start of the minute in which messages are counted',
  window_sent INT      NOT NULL DEFAULT 0 COMMENT 'messages in that minute, including retries',
  beat_at BIGINT       NOT NULL DEFAULT 0 COMMENT 'heartbeat: time of its last check',
  held    VARCHAR(512) NOT NULL DEFAULT '' COMMENT 'heartbeat: reason why the last one was not sent',
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
  app     VARCHAR(128) NOT NULL DEFAULT '' COMMENT 'only alerts of this app; empty: all alerts',
  job     VARCHAR(128) NOT NULL DEFAULT '' COMMENT 'only alerts of this job of the app',
  rule    VARCHAR(128) NOT NULL DEFAULT '' COMMENT 'only alerts of this rule',
  until   BIGINT       NOT NULL,
  reason  VARCHAR(512) NOT NULL,
  who     VARCHAR(128) NOT NULL DEFAULT '',
  created BIGINT       NOT NULL,
  PRIMARY KEY (id),
  KEY until (until)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- One row per alert. It fires once and counts repeats until it is over.
CREATE TABLE alert (
  id       BIGINT       NOT NULL AUTO_INCREMENT,
  subject  BINARY(16)   NOT NULL          COMMENT 'hash of the rule, the event and the subject',
  firing   TINYINT      NULL DEFAULT 1    COMMENT '1, or NULL once it is over',
  rule_id  BIGINT       NOT NULL,
  rule     VARCHAR(128) NOT NULL,
  event    VARCHAR(16)  NOT NULL,
  severity VARCHAR(16)  NOT NULL,
  app      VARCHAR(128) NOT NULL DEFAULT '',
  job_id   BIGINT       NOT NULL DEFAULT 0,
  job      VARCHAR(128) NOT NULL DEFAULT '',
  owner    VARCHAR(1024) NOT NULL DEFAULT '' COMMENT 'owner of the job',
  node     VARCHAR(128) NOT NULL DEFAULT '',
  run      VARCHAR(64)  NOT NULL DEFAULT '' COMMENT 'the latest run',
  summary  VARCHAR(1024) NOT NULL,
  first_at BIGINT       NOT NULL,
  last_at  BIGINT       NOT NULL,
  seen     BIGINT       NOT NULL DEFAULT 1 COMMENT 'number of occurrences',
  told_at  BIGINT       NOT NULL DEFAULT 0 COMMENT 'time of the last message about it; 0: none',
  silence_id BIGINT     NOT NULL DEFAULT 0 COMMENT 'the silence that suppresses its messages; 0: none',
  over_at  BIGINT       NOT NULL DEFAULT 0,
  over_why VARCHAR(512) NOT NULL DEFAULT '',
  PRIMARY KEY (id),
  UNIQUE KEY subject (subject, firing),
  KEY firing (firing, id),
  KEY app (app, id),
  KEY job (job_id, id),
  KEY over_at (over_at)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- One row per message.
CREATE TABLE delivery (
  id         BIGINT       NOT NULL AUTO_INCREMENT,
  idem       BINARY(16)   NOT NULL          COMMENT 'key by which the receiver detects a repeated message',
  kind       VARCHAR(16)  NOT NULL          COMMENT 'alert, test, ping or heartbeat',
  channel_id BIGINT       NOT NULL DEFAULT 0 COMMENT '0: the ping of a job',
  channel    VARCHAR(128) NOT NULL DEFAULT '',
  rule_id    BIGINT       NOT NULL DEFAULT 0,
  rule       VARCHAR(128) NOT NULL DEFAULT '',
  target     VARCHAR(320) NOT NULL DEFAULT '' COMMENT 'receiver, if the channel does not name one',
  job_id     BIGINT       NOT NULL DEFAULT 0 COMMENT 'job of a ping',
  state      TINYINT      NOT NULL COMMENT '0 pending 1 sending 2 sent 3 failed 4 silenced 5 suppressed',
  attempts   INT          NOT NULL DEFAULT 0,
  next_at    BIGINT       NOT NULL COMMENT 'time to send it; while sending, end of the lease',
  session_id BINARY(16)   NULL COMMENT 'session that sends it',
  events     BIGINT       NOT NULL DEFAULT 1 COMMENT 'number of events in the message',
  items      MEDIUMTEXT   NOT NULL COMMENT 'the first events, as JSON',
  said       VARCHAR(512) NOT NULL DEFAULT '' COMMENT 'answer of the channel, or reason of the failure',
  created    BIGINT       NOT NULL,
  updated    BIGINT       NOT NULL,
  PRIMARY KEY (id),
  KEY due (state, next_at),
  KEY grp (channel_id, state, rule_id),
  KEY job (job_id, state),
  KEY created (created),
  KEY kind (kind, created)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Latest failures, for rules that count failures.
CREATE TABLE alert_streak (
  rule_id BIGINT     NOT NULL,
  subject BINARY(16) NOT NULL,
  times   TEXT       NOT NULL COMMENT 'the latest failures, as JSON',
  updated BIGINT     NOT NULL,
  PRIMARY KEY (subject),
  KEY updated (updated)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Two rows. 1: the evaluating session and its position. 2: n counts changes of the definitions.
CREATE TABLE alert_work (
  id       INT        NOT NULL,
  n        BIGINT     NOT NULL DEFAULT 0 COMMENT 'incremented by each step; a step counts only if no other session took one',
  holder   BINARY(16) NULL,
  until    BIGINT     NOT NULL DEFAULT 0,
  position MEDIUMTEXT NULL,
  lost     BIGINT     NOT NULL DEFAULT 0 COMMENT 'events dropped because there were too many',
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
