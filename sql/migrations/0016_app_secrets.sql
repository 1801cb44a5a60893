-- Apps have secrets of their own: a name is taken within its app. Jobs use that of their app, or else that of all apps.
--
-- A program of the version before reads all rows of a name and uses one of them that its job may use.

-- +goose Up
ALTER TABLE secret
  ADD UNIQUE KEY name_app (name, app),
  DROP KEY name;

-- +goose Down
ALTER TABLE secret
  ADD UNIQUE KEY name (name),
  DROP KEY name_app;
