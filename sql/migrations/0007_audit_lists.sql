-- Lines of the audit by each of what one asks for, in the order of the list.
--
-- Builds the indexes while the table can be written; a million lines take some seconds.

-- +goose Up

ALTER TABLE audit
  ADD KEY who (who, at),
  ADD KEY app (app, at),
  ADD KEY name (name, at),
  ADD KEY action (action, at),
  ADD KEY kind (kind, at);

-- +goose Down
ALTER TABLE audit DROP KEY kind, DROP KEY action, DROP KEY name, DROP KEY app, DROP KEY who;
