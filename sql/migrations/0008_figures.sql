-- How much each node does, for people who watch: a row for each ten seconds in which it did something. Rows that are
-- older than twenty minutes are removed.

-- +goose Up

CREATE TABLE figure (
  at     BIGINT     NOT NULL COMMENT 'when the ten seconds begin',
  source BINARY(16) NOT NULL COMMENT 'the process that counts: sessions come and go while it counts on',
  starts BIGINT     NOT NULL COMMENT 'attempts that began',
  ends   BIGINT     NOT NULL COMMENT 'attempts that had begun and are over',
  failed BIGINT     NOT NULL COMMENT 'those of them that did not succeed',
  late   VARCHAR(2048) NOT NULL COMMENT 'how late those that began were: a JSON array of [class, attempts], see job.LateClass',
  PRIMARY KEY (at, source)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_bin;

-- +goose Down
DROP TABLE figure;
