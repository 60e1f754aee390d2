-- The key from which the server's other keys are derived, sealed with the key that the operator keeps. There is more than
-- one row only while that one is being replaced, or after it was lost.
CREATE TABLE server_keys (
    id         TEXT    NOT NULL PRIMARY KEY,
    sealed     TEXT    NOT NULL,
    created_at INTEGER NOT NULL
) STRICT;

-- Values are sealed, each bound to its name. `hosts`: the only ones that a run with the secret may reach; empty for any.
CREATE TABLE secrets (
    name       TEXT    NOT NULL PRIMARY KEY,
    sealed     TEXT    NOT NULL,
    hosts      TEXT    NOT NULL CHECK (json_type(hosts) = 'array'),
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    updated_by TEXT    NOT NULL
) STRICT;
