-- Limits of apps, and the counts by which nodes hold them.
--
-- Both tables are new: nothing that exists is locked.

-- +goose Up

CREATE TABLE app_limit (
  app             VARCHAR(128) NOT NULL,
  jobs            BIGINT       NULL COMMENT 'living jobs; NULL, here and in the next two: no limit',
  runs_per_minute BIGINT       NULL COMMENT 'starts in 60 seconds',
  waiting         BIGINT       NULL COMMENT 'tasks in state waiting',
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

-- +goose Down
DROP TABLE app_start, app_limit;
