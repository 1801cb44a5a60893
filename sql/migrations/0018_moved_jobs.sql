-- A run belongs to the app that its job was in when it started, and stays there when the job is moved.
--
-- Table moved has no use any more. It stays for programs of the version before, which write it.

-- +goose Up
CREATE TABLE job_app (
  job_id BIGINT       NOT NULL,
  number INT UNSIGNED NOT NULL COMMENT 'CRC32 of the app, as history.app has it',
  app    VARCHAR(128) NOT NULL COMMENT 'an app in which the job was before',
  PRIMARY KEY (job_id, number)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- Attempts that executed when their job was moved. A row goes once its attempt has ended.
CREATE TABLE run_app (
  session_id BINARY(16)   NOT NULL,
  launch     BIGINT       NOT NULL,
  app        VARCHAR(128) NOT NULL COMMENT 'the app under which it was started',
  PRIMARY KEY (session_id, launch)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE run_app, job_app;
