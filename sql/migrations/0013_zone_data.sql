-- Which time zone data each node computes with: where they differ, so may the due times that they compute, and once all have other
-- data than before, jobs are planned anew.

-- +goose Up
ALTER TABLE session
  ADD COLUMN zones      VARCHAR(32) NOT NULL DEFAULT '' COMMENT 'fingerprint of the time zone data that the node computes with; empty: nobody knows',
  ADD COLUMN zones_from VARCHAR(64) NOT NULL DEFAULT '' COMMENT 'where that data is from, for people', ALGORITHM=INSTANT;

-- +goose Down
ALTER TABLE session DROP COLUMN zones_from, DROP COLUMN zones;
