-- Browsers that are signed in can be listed and ended, and the identity provider is asked again about the people for whom
-- it vouched.
--
-- login is short, and written for sign-ins alone.

-- +goose Up
ALTER TABLE login
  ADD COLUMN used      BIGINT      NOT NULL DEFAULT 0  COMMENT 'when it was last used, to about a minute; 0: never',
  ADD COLUMN used_from VARCHAR(64) NOT NULL DEFAULT '' COMMENT 'and from which address',
  ADD COLUMN checked   BIGINT      NOT NULL DEFAULT 0  COMMENT 'when the provider last said what who may do; 0: not since the sign-in',
  ADD COLUMN check_at  BIGINT      NOT NULL DEFAULT 0  COMMENT 'when to ask the provider next, 0: never; whoever asks moves it on first',
  ADD COLUMN key_id    VARCHAR(16) NOT NULL DEFAULT '' COMMENT 'which key sealed is sealed with',
  ADD COLUMN sealed    BLOB        NULL                COMMENT 'what the provider wants to see then: a refresh token; hash is authenticated with it',
  ADD KEY check_at (check_at);

-- +goose Down
ALTER TABLE login
  DROP KEY check_at,
  DROP COLUMN sealed,
  DROP COLUMN key_id,
  DROP COLUMN check_at,
  DROP COLUMN checked,
  DROP COLUMN used_from,
  DROP COLUMN used;
