-- The version that is to serve once its environment is installed; until then, the one before it goes on. The previous
-- release, which doesn't know of it, leaves it alone: such a version then waits until the next release runs again.
ALTER TABLE tools ADD COLUMN installing_version INTEGER;
