-- The chain of hashes over the audit. Each row stands for one audit line, and its hash covers that line and the hash before it.
-- seq has no gaps, so a changed or missing line shows. Nobody updates these rows.

-- +goose Up
CREATE TABLE audit_chain (
  seq  BIGINT     NOT NULL COMMENT 'from 1, without a gap',
  line BIGINT     NOT NULL COMMENT 'id of the audit line',
  at   BIGINT     NOT NULL COMMENT 'when that line was written',
  hash BINARY(32) NOT NULL COMMENT 'that time, then 24 bytes of the SHA-256 of the hash before and of the line',
  PRIMARY KEY (seq),
  UNIQUE KEY line (line)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE audit_chain;
