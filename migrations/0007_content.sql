-- Saved content: resources (by URI or URI template), prompts and skills (by name).
CREATE TABLE contents (
    id              TEXT    NOT NULL PRIMARY KEY,
    kind            TEXT    NOT NULL CHECK (kind IN ('resource', 'prompt', 'skill')),
    name            TEXT    NOT NULL,
    owner           TEXT    NOT NULL REFERENCES principals (id),
    enabled         INTEGER NOT NULL CHECK (enabled IN (0, 1)),
    serving_version INTEGER,
    latest_version  INTEGER NOT NULL,
    created_at      INTEGER NOT NULL,
    updated_at      INTEGER NOT NULL,
    UNIQUE (kind, name)
) STRICT;
CREATE INDEX contents_by_owner ON contents (owner, kind, name);

CREATE TABLE content_versions (
    content     TEXT    NOT NULL REFERENCES contents (id) ON DELETE CASCADE,
    number      INTEGER NOT NULL CHECK (number >= 1),
    title       TEXT,
    description TEXT,
    fingerprint TEXT    NOT NULL,
    created_at  INTEGER NOT NULL,
    created_by  TEXT    NOT NULL REFERENCES principals (id),
    note        TEXT    NOT NULL,
    definition  TEXT    NOT NULL CHECK (json_type(definition) = 'object'),
    PRIMARY KEY (content, number)
) STRICT;

-- The bytes of files, each once, however many versions hold it.
CREATE TABLE content_blobs (
    digest TEXT NOT NULL PRIMARY KEY,
    bytes  BLOB NOT NULL
) STRICT;

-- A static resource is one file with an empty path; a skill is many.
CREATE TABLE content_files (
    content   TEXT    NOT NULL,
    number    INTEGER NOT NULL,
    path      TEXT    NOT NULL,
    mime_type TEXT,
    size      INTEGER NOT NULL,
    digest    TEXT    NOT NULL REFERENCES content_blobs (digest),
    PRIMARY KEY (content, number, path),
    FOREIGN KEY (content, number) REFERENCES content_versions (content, number) ON DELETE CASCADE
) STRICT;
CREATE INDEX content_files_by_digest ON content_files (digest);

-- A version never changes; it goes only together with its content. Its files are inserted with it and go with it.
CREATE TRIGGER content_versions_refuse_update BEFORE UPDATE ON content_versions
BEGIN
    SELECT RAISE(ABORT, 'a content version never changes');
END;
CREATE TRIGGER content_versions_refuse_replace BEFORE INSERT ON content_versions
WHEN EXISTS (SELECT 1 FROM content_versions WHERE content = NEW.content AND number = NEW.number)
BEGIN
    SELECT RAISE(ABORT, 'a content version never changes');
END;
CREATE TRIGGER content_versions_refuse_delete BEFORE DELETE ON content_versions
WHEN EXISTS (SELECT 1 FROM contents WHERE id = OLD.content)
BEGIN
    SELECT RAISE(ABORT, 'a content version goes only together with its content');
END;
CREATE TRIGGER content_files_refuse_update BEFORE UPDATE ON content_files
BEGIN
    SELECT RAISE(ABORT, 'a content version never changes');
END;
CREATE TRIGGER content_files_refuse_delete BEFORE DELETE ON content_files
WHEN EXISTS (SELECT 1 FROM contents WHERE id = OLD.content)
BEGIN
    SELECT RAISE(ABORT, 'a content version goes only together with its content');
END;
CREATE TRIGGER content_blobs_refuse_update BEFORE UPDATE ON content_blobs
BEGIN
    SELECT RAISE(ABORT, 'a content version never changes');
END;
CREATE TRIGGER content_files_drop_blob AFTER DELETE ON content_files
WHEN NOT EXISTS (SELECT 1 FROM content_files WHERE digest = OLD.digest)
BEGIN
    DELETE FROM content_blobs WHERE digest = OLD.digest;
END;

-- What clients are told of, in order: the highest id is the generation of the saved content. `subject` says which list
-- changed, if one did; `uri` which resource did. Old rows are pruned.
CREATE TABLE content_news (
    id      INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    owner   TEXT    NOT NULL,
    subject TEXT    CHECK (subject IN ('tools', 'prompts', 'resources')),
    uri     TEXT,
    at      INTEGER NOT NULL
) STRICT;
