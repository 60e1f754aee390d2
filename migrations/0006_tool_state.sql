-- What tools keep for their callers (`ctx.state`): by tool, principal and class of reach.
CREATE TABLE tool_state (
    tool       TEXT    NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
    principal  TEXT    NOT NULL,
    class      TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    value      TEXT    NOT NULL CHECK (json_valid(value)),
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (tool, principal, class, key)
) STRICT, WITHOUT ROWID;
