-- What jobs use and nobody may read: sealed with keys that only nodes have.

-- +goose Up

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
  UNIQUE KEY name (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DELETE FROM job_ref WHERE kind = 3;
DROP TABLE secret;
