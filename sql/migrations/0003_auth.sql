-- Who may do what: API tokens, and browsers that are signed in.

-- +goose Up

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
  PRIMARY KEY (id),
  UNIQUE KEY hash (hash),
  KEY who (who),
  KEY token (token_id),
  KEY expires (expires)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

CREATE VIEW v_api_token AS
  SELECT id, name, role, apps, created_by, TIMESTAMPADD(MICROSECOND, created, '1970-01-01') AS created,
         TIMESTAMPADD(MICROSECOND, NULLIF(expires, 0), '1970-01-01') AS expires,
         TIMESTAMPADD(MICROSECOND, NULLIF(revoked, 0), '1970-01-01') AS revoked,
         TIMESTAMPADD(MICROSECOND, NULLIF(used, 0), '1970-01-01') AS used, used_from
  FROM api_token;

-- +goose Down
DROP VIEW v_api_token;
DROP TABLE login, api_token;
