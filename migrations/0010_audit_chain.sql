-- The audit log as a chain: each entry has a number and a MAC, made with the server's key, over the MAC before it and
-- over everything that it says. `mac` is NULL only for entries from before the chain, until the program that runs this
-- migration adopts them, and for what is written by a program that has no key.
CREATE TABLE audit_chain (
    number      INTEGER NOT NULL PRIMARY KEY,
    id          TEXT    NOT NULL UNIQUE,
    at          INTEGER NOT NULL,
    principal   TEXT,
    token       TEXT,
    source      TEXT,
    action      TEXT    NOT NULL,
    subject     TEXT    NOT NULL,
    detail      TEXT    NOT NULL CHECK (json_valid(detail)),
    before      TEXT,
    fingerprint TEXT,
    outcome     TEXT    NOT NULL,
    mac         BLOB    CHECK (mac IS NULL OR length(mac) = 32)
) STRICT;
INSERT INTO audit_chain (number, id, at, principal, token, action, subject, detail, fingerprint, outcome)
SELECT row_number() OVER (ORDER BY id), id, at, principal, token, action, subject, detail, fingerprint, outcome
FROM audit;
DROP TABLE audit;
ALTER TABLE audit_chain RENAME TO audit;
CREATE INDEX audit_by_subject ON audit (subject, number);

-- Where the chain ends (`head`), and up to where it was pruned (`checkpoint`): a number, the MAC of the entry with that
-- number, and a MAC over both.
CREATE TABLE audit_seals (
    name   TEXT    NOT NULL PRIMARY KEY CHECK (name IN ('head', 'checkpoint')),
    number INTEGER NOT NULL,
    at     INTEGER NOT NULL,
    mac    BLOB    NOT NULL CHECK (length(mac) = 32),
    seal   BLOB    NOT NULL CHECK (length(seal) = 32)
) STRICT;

-- These keep mistakes away, not whoever can write the file: such a hand is found by the MACs.
CREATE TRIGGER audit_refuse_update BEFORE UPDATE ON audit
WHEN OLD.mac IS NOT NULL OR NEW.mac IS NULL OR NEW.number <> OLD.number
BEGIN
    SELECT RAISE(ABORT, 'an audit entry never changes');
END;
CREATE TRIGGER audit_refuse_replace BEFORE INSERT ON audit
WHEN EXISTS (SELECT 1 FROM audit WHERE number = NEW.number OR id = NEW.id)
BEGIN
    SELECT RAISE(ABORT, 'an audit entry never changes');
END;
CREATE TRIGGER audit_refuse_delete BEFORE DELETE ON audit
WHEN NOT EXISTS (SELECT 1 FROM audit_seals WHERE name = 'checkpoint' AND number >= OLD.number)
BEGIN
    SELECT RAISE(ABORT, 'an audit entry never goes away before a checkpoint stands for it');
END;
CREATE TRIGGER audit_seals_refuse_return BEFORE UPDATE ON audit_seals
WHEN NEW.name <> OLD.name OR NEW.number <= OLD.number
BEGIN
    SELECT RAISE(ABORT, 'a seal of the audit log never goes back');
END;
CREATE TRIGGER audit_seals_refuse_replace BEFORE INSERT ON audit_seals
WHEN EXISTS (SELECT 1 FROM audit_seals WHERE name = NEW.name)
BEGIN
    SELECT RAISE(ABORT, 'a seal of the audit log never goes back');
END;
CREATE TRIGGER audit_seals_refuse_delete BEFORE DELETE ON audit_seals
BEGIN
    SELECT RAISE(ABORT, 'a seal of the audit log never goes away');
END;

-- When a token was used last, to the minute.
ALTER TABLE tokens ADD COLUMN last_used_at INTEGER;

-- Raised with each revocation, so that other processes need look at one number only.
ALTER TABLE meta ADD COLUMN revocations INTEGER NOT NULL DEFAULT 0;
CREATE TRIGGER tokens_revoked AFTER UPDATE OF revoked_at ON tokens
BEGIN
    UPDATE meta SET revocations = revocations + 1;
END;
