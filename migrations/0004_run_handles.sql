-- Runs that answer later: the protocol error that a call ended in, the key that makes a repeated call the same call, and
-- how often an asynchronous run was started.
ALTER TABLE runs ADD COLUMN error TEXT CHECK (error IS NULL OR json_type(error) = 'object');
ALTER TABLE runs ADD COLUMN idempotency TEXT;
ALTER TABLE runs ADD COLUMN tries INTEGER NOT NULL DEFAULT 1;
ALTER TABLE runs ADD COLUMN parent TEXT;
CREATE INDEX runs_by_idempotency ON runs (idempotency, id) WHERE idempotency IS NOT NULL;
