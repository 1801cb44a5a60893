-- How long records are kept, output that is compressed, and by what nodes notice that a database is an older one.
--
-- The new column is added without a copy of the table.

-- +goose Up

-- Rules of apps, and, with an empty name, of the whole cluster. Those of jobs stand in their definitions.
CREATE TABLE retention (
  app     VARCHAR(128) NOT NULL,
  spec    TEXT         NOT NULL COMMENT 'the rule as JSON, see job.Retention',
  who     VARCHAR(128) NOT NULL DEFAULT '',
  updated BIGINT       NOT NULL DEFAULT 0,
  PRIMARY KEY (app)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- A new cluster keeps 90 days, and a year of what did not succeed. One that has jobs keeps all until somebody says so.
INSERT INTO retention (app, spec) SELECT '', '{"age":"2160h0m0s","failures":"8760h0m0s"}' FROM DUAL WHERE NOT EXISTS (SELECT 1 FROM job);

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
INSERT INTO chore (name) VALUES ('retention');

ALTER TABLE output ADD COLUMN encoding TINYINT NOT NULL DEFAULT 0 COMMENT 'of head and tail: 0 as it was written, 1 DEFLATE';

-- See sql.Watermark.
INSERT INTO setting (name, value) VALUES ('epoch', UUID()), ('mark', '0 0');

-- +goose Down
DELETE FROM setting WHERE name IN ('epoch', 'mark');
DELETE FROM output WHERE encoding <> 0;
ALTER TABLE output DROP COLUMN encoding;
DROP TABLE chore, retention;
