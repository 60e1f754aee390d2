-- One row of facts about the whole database. Every write to tools raises `catalog_generation` in its transaction;
-- `catalog_updated_at` is the last `tools.updated_at` given out, so that no two are equal.
CREATE TABLE meta (
    id                 INTEGER NOT NULL PRIMARY KEY CHECK (id = 1),
    catalog_generation INTEGER NOT NULL,
    catalog_updated_at INTEGER NOT NULL
) STRICT;
INSERT INTO meta (id, catalog_generation, catalog_updated_at) VALUES (1, 1, 0);

CREATE TABLE principals (
    id         TEXT    NOT NULL PRIMARY KEY,
    name       TEXT    NOT NULL UNIQUE,
    kind       TEXT    NOT NULL CHECK (kind IN ('person', 'client', 'local')),
    created_at INTEGER NOT NULL
) STRICT;

CREATE TABLE tokens (
    id          TEXT    NOT NULL PRIMARY KEY,
    principal   TEXT    NOT NULL REFERENCES principals (id),
    name        TEXT    NOT NULL,
    scopes      TEXT    NOT NULL,
    secret_hash BLOB    NOT NULL CHECK (length(secret_hash) = 32),
    created_at  INTEGER NOT NULL,
    expires_at  INTEGER,
    revoked_at  INTEGER
) STRICT;
CREATE INDEX tokens_by_principal ON tokens (principal, created_at);

CREATE TABLE sign_in_links (
    code_hash  BLOB    NOT NULL PRIMARY KEY CHECK (length(code_hash) = 32),
    principal  TEXT    NOT NULL REFERENCES principals (id),
    created_at INTEGER NOT NULL,
    expires_at INTEGER NOT NULL
) STRICT;

CREATE TABLE sessions (
    id_hash      BLOB    NOT NULL PRIMARY KEY CHECK (length(id_hash) = 32),
    principal    TEXT    NOT NULL REFERENCES principals (id),
    created_at   INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL
) STRICT;

CREATE TABLE tools (
    id              TEXT    NOT NULL PRIMARY KEY,
    name            TEXT    NOT NULL UNIQUE,
    folded_name     TEXT    NOT NULL,
    owner           TEXT    NOT NULL REFERENCES principals (id),
    enabled         INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    serving_version INTEGER,
    latest_version  INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL
) STRICT;
CREATE INDEX tools_by_owner ON tools (owner, updated_at DESC, id DESC);
CREATE INDEX tools_by_update ON tools (updated_at DESC, id DESC);

-- The columns besides `definition` repeat what lists and searches need of it. The big one comes last: a row's first
-- columns are read without its overflow pages.
CREATE TABLE tool_versions (
    tool        TEXT    NOT NULL REFERENCES tools (id) ON DELETE CASCADE,
    number      INTEGER NOT NULL CHECK (number >= 1),
    title       TEXT,
    description TEXT    NOT NULL,
    language    TEXT    NOT NULL,
    tags        TEXT    NOT NULL CHECK (json_type(tags) = 'array'),
    fingerprint TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    created_by  TEXT    NOT NULL REFERENCES principals (id),
    note        TEXT    NOT NULL,
    definition  TEXT    NOT NULL CHECK (json_type(definition) = 'object'),
    PRIMARY KEY (tool, number)
) STRICT;

-- A version never changes; it goes only together with its tool.
CREATE TRIGGER tool_versions_refuse_update BEFORE UPDATE ON tool_versions
BEGIN
    SELECT RAISE(ABORT, 'a tool version never changes');
END;
CREATE TRIGGER tool_versions_refuse_replace BEFORE INSERT ON tool_versions
WHEN EXISTS (SELECT 1 FROM tool_versions WHERE tool = NEW.tool AND number = NEW.number)
BEGIN
    SELECT RAISE(ABORT, 'a tool version never changes');
END;
CREATE TRIGGER tool_versions_refuse_delete BEFORE DELETE ON tool_versions
WHEN EXISTS (SELECT 1 FROM tools WHERE id = OLD.tool)
BEGIN
    SELECT RAISE(ABORT, 'a tool version goes only together with its tool');
END;

-- The history outlives what it tells of: `tool` and `principal` are no foreign keys, and `tool_name` stays. Ids are UUIDv7, so their order is time's.
CREATE TABLE runs (
    id                TEXT    NOT NULL PRIMARY KEY,
    tool              TEXT,
    tool_name         TEXT    NOT NULL,
    version           INTEGER,
    principal         TEXT    NOT NULL,
    client            TEXT,
    door              TEXT    NOT NULL,
    instance          TEXT    NOT NULL,
    queued_at         INTEGER NOT NULL,
    started_at        INTEGER,
    ended_at          INTEGER,
    ending            TEXT,
    ending_detail     TEXT,
    is_error          INTEGER NOT NULL CHECK (is_error IN (0, 1)),
    cpu_ms            INTEGER NOT NULL,
    peak_memory_bytes INTEGER NOT NULL,
    sandbox           TEXT    NOT NULL,
    coerced           TEXT    NOT NULL CHECK (json_type(coerced) = 'array'),
    arguments         TEXT    NOT NULL,
    result            TEXT,
    stdout            TEXT    NOT NULL,
    stderr            TEXT    NOT NULL,
    log               TEXT    NOT NULL
) STRICT;
CREATE INDEX runs_by_principal ON runs (principal, id);
CREATE INDEX runs_by_tool_name ON runs (tool_name, id);
CREATE INDEX runs_unended ON runs (id) WHERE ending IS NULL;
CREATE INDEX runs_by_end ON runs (ended_at);
CREATE INDEX runs_with_result ON runs (ended_at) WHERE result IS NOT NULL;

CREATE TABLE instances (
    id         TEXT    NOT NULL PRIMARY KEY,
    pid        INTEGER NOT NULL,
    host       TEXT    NOT NULL,
    lock_file  TEXT    NOT NULL,
    started_at INTEGER NOT NULL
) STRICT;

CREATE TABLE audit (
    id          TEXT    NOT NULL PRIMARY KEY,
    at          INTEGER NOT NULL,
    principal   TEXT,
    token       TEXT,
    action      TEXT    NOT NULL,
    subject     TEXT    NOT NULL,
    detail      TEXT    NOT NULL CHECK (json_valid(detail)),
    fingerprint TEXT,
    outcome     TEXT    NOT NULL
) STRICT;
CREATE INDEX audit_by_subject ON audit (subject, id);
CREATE TRIGGER audit_refuse_update BEFORE UPDATE ON audit
BEGIN
    SELECT RAISE(ABORT, 'an audit entry never changes');
END;
CREATE TRIGGER audit_refuse_delete BEFORE DELETE ON audit
BEGIN
    SELECT RAISE(ABORT, 'an audit entry never goes away');
END;
