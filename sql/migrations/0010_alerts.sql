-- Alerts: where they go, what they are about, who wants to hear nothing for a while, what fired, and what was sent.
--
-- All tables are new: nothing that exists is locked.

-- +goose Up

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

-- +goose Down
DROP VIEW v_delivery, v_alert;
DROP TABLE alert_work, alert_streak, delivery, alert, alert_silence, alert_rule, alert_channel;
