-- A limit of the kept output of an app, and the sums by which nodes hold it.
--
-- Column and table are new: nothing that exists is locked.

-- +goose Up

ALTER TABLE app_limit ADD COLUMN output BIGINT NULL COMMENT 'bytes of kept output; NULL: no limit';

-- The kept output of each app, while some app has a limit of it. The row with an empty name says how far history is counted.
CREATE TABLE app_output (
  app   VARCHAR(128) NOT NULL,
  bytes BIGINT       NOT NULL DEFAULT 0 COMMENT 'history.output_kept of its counted runs',
  upto  BIGINT       NOT NULL DEFAULT 0 COMMENT 'id in history: no counted run of the app up to it has output. Empty name: runs up to it are counted',
  taken BIGINT       NOT NULL DEFAULT 0 COMMENT 'of the row with an empty name: written by whoever changes sums, so that such changes exclude each other',
  PRIMARY KEY (app)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

INSERT INTO chore (name) VALUES ('output');

-- +goose Down
DELETE FROM chore WHERE name = 'output';
DROP TABLE app_output;
ALTER TABLE app_limit DROP COLUMN output;
