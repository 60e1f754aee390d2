-- What a person has approved: one definition of a tool or of saved content, by its fingerprint. `seal` is a MAC over the
-- other columns with the server's key: rows that somebody else wrote or changed approve nothing. At most one approval of
-- a subject is active. `approved_by` and `ended_by` are no foreign keys: the history outlives principals.
CREATE TABLE approvals (
    id          TEXT    NOT NULL PRIMARY KEY,
    subject     TEXT    NOT NULL,
    version     INTEGER NOT NULL,
    fingerprint TEXT    NOT NULL,
    state       TEXT    NOT NULL CHECK (state IN ('active', 'retired', 'revoked')),
    approved_at INTEGER NOT NULL,
    approved_by TEXT    NOT NULL,
    note        TEXT    NOT NULL,
    ended_at    INTEGER,
    ended_by    TEXT,
    seal        TEXT    NOT NULL
) STRICT;
CREATE UNIQUE INDEX approvals_active ON approvals (subject) WHERE state = 'active';
CREATE INDEX approvals_by_subject ON approvals (subject, id);

-- They go together with what they are of.
CREATE TRIGGER approvals_go_with_tool AFTER DELETE ON tools
BEGIN
    DELETE FROM approvals WHERE subject = OLD.id;
END;
CREATE TRIGGER approvals_go_with_content AFTER DELETE ON contents
BEGIN
    DELETE FROM approvals WHERE subject = OLD.id;
END;
