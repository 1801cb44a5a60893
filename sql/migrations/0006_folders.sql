-- Folders with files of jobs that nodes follow.

-- +goose Up

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

-- +goose Down
DROP TABLE folder_node, folder;
