-- Toolsets: named groups of a principal's tools and saved content, by hand (`toolset_members`), by tag, or everything.
-- A `search` toolset lists two tools alone; a `portable` one serves schemas in their plainest form.
CREATE TABLE toolsets (
    id           TEXT    NOT NULL PRIMARY KEY,
    name         TEXT    NOT NULL UNIQUE,
    owner        TEXT    NOT NULL REFERENCES principals (id),
    description  TEXT    NOT NULL,
    instructions TEXT    NOT NULL,
    tags         TEXT    NOT NULL CHECK (json_type(tags) = 'array'),
    everything   INTEGER NOT NULL CHECK (everything IN (0, 1)),
    search       INTEGER NOT NULL CHECK (search IN (0, 1)),
    portable     INTEGER NOT NULL CHECK (portable IN (0, 1)),
    revision     INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    updated_at   INTEGER NOT NULL
) STRICT;
CREATE INDEX toolsets_by_owner ON toolsets (owner, name);

-- `subject` is a tool's id or a content item's; it goes with what it names.
CREATE TABLE toolset_members (
    toolset TEXT NOT NULL REFERENCES toolsets (id) ON DELETE CASCADE,
    subject TEXT NOT NULL,
    PRIMARY KEY (toolset, subject)
) STRICT;
CREATE INDEX toolset_members_by_subject ON toolset_members (subject);
CREATE TRIGGER toolset_members_go_with_tool AFTER DELETE ON tools
BEGIN
    DELETE FROM toolset_members WHERE subject = OLD.id;
END;
CREATE TRIGGER toolset_members_go_with_content AFTER DELETE ON contents
BEGIN
    DELETE FROM toolset_members WHERE subject = OLD.id;
END;

-- What is inside a toolset, said once for every query. The tags that count are those of the version that serves, or of
-- the latest one where none does: a version that waits for approval moves nothing.
CREATE VIEW toolset_tools AS
SELECT s.id AS toolset, t.id AS tool
FROM toolsets s
JOIN tools t ON t.owner = s.owner
JOIN tool_versions v ON v.tool = t.id AND v.number = COALESCE(t.serving_version, t.latest_version)
WHERE s.everything = 1
   OR EXISTS (SELECT 1 FROM toolset_members m WHERE m.toolset = s.id AND m.subject = t.id)
   OR EXISTS (SELECT 1 FROM json_each(s.tags) wanted JOIN json_each(v.tags) has
              ON lower(wanted.value) = lower(has.value));
CREATE VIEW toolset_contents AS
SELECT s.id AS toolset, c.id AS content
FROM toolsets s
JOIN contents c ON c.owner = s.owner
JOIN content_versions v ON v.content = c.id AND v.number = COALESCE(c.serving_version, c.latest_version)
WHERE s.everything = 1
   OR EXISTS (SELECT 1 FROM toolset_members m WHERE m.toolset = s.id AND m.subject = c.id)
   OR EXISTS (SELECT 1 FROM json_each(s.tags) wanted JOIN json_each(v.definition, '$.tags') has
              ON lower(wanted.value) = lower(has.value));

-- A token may be limited to a toolset. One whose toolset is gone reaches nothing: nothing is inside.
ALTER TABLE tokens ADD COLUMN toolset TEXT;
-- The toolset that a run was asked for within.
ALTER TABLE runs ADD COLUMN toolset TEXT;

-- The search stems its words, and finds what is said of arguments too. Names are split at `_` (the tokenizer does) and
-- before capitals (the view does, for the first 2,000 characters).
DROP TRIGGER tool_versions_search_insert;
DROP TRIGGER tools_search_rename;
DROP TRIGGER tools_search_delete;
DROP TABLE tool_search;
CREATE VIRTUAL TABLE tool_search USING fts5 (
    tool UNINDEXED, name, title, description, tags, arguments,
    tokenize = 'porter unicode61 remove_diacritics 2', prefix = '2 3'
);
CREATE VIEW tool_search_texts AS
SELECT t.id AS tool, t.name, v.title, v.description,
       (SELECT group_concat(value, ' ') FROM json_each(v.tags)) AS tags,
       substr((SELECT group_concat(key, ' ') FROM json_tree(v.definition, '$.input_schema')
               WHERE path LIKE '%.properties'), 1, 2000) AS argument_names,
       (SELECT group_concat(atom, ' ') FROM json_tree(v.definition, '$.input_schema')
        WHERE type = 'text' AND key IN ('description', 'title')) AS argument_texts
FROM tools t JOIN tool_versions v ON v.tool = t.id AND v.number = t.latest_version;
CREATE VIEW tool_search_documents AS
SELECT tool, name || ' ' || (
           WITH RECURSIVE letters (at, letter, before, after) AS (
               SELECT 1, substr(name, 1, 1), '', substr(name, 2, 1)
               UNION ALL
               SELECT at + 1, after, letter, substr(name, at + 2, 1) FROM letters WHERE after <> ''
           )
           SELECT group_concat(
               CASE WHEN letter GLOB '[A-Z]' AND (before GLOB '[a-z0-9]' OR (before GLOB '[A-Z]' AND after GLOB '[a-z]'))
                    THEN ' ' || letter ELSE letter END, '') FROM letters
       ) AS name, title, description, tags,
       COALESCE(argument_names, '') || ' ' || COALESCE((
           WITH RECURSIVE letters (at, letter, before, after) AS (
               SELECT 1, substr(argument_names, 1, 1), '', substr(argument_names, 2, 1)
               WHERE argument_names <> ''
               UNION ALL
               SELECT at + 1, after, letter, substr(argument_names, at + 2, 1) FROM letters WHERE after <> ''
           )
           SELECT group_concat(
               CASE WHEN letter GLOB '[A-Z]' AND (before GLOB '[a-z0-9]' OR (before GLOB '[A-Z]' AND after GLOB '[a-z]'))
                    THEN ' ' || letter ELSE letter END, '') FROM letters
       ), '') || ' ' || COALESCE(argument_texts, '') AS arguments
FROM tool_search_texts;

INSERT INTO tool_search (tool, name, title, description, tags, arguments)
SELECT tool, name, title, description, tags, arguments FROM tool_search_documents;

CREATE TRIGGER tool_versions_search_insert AFTER INSERT ON tool_versions
BEGIN
    DELETE FROM tool_search WHERE tool = NEW.tool;
    INSERT INTO tool_search (tool, name, title, description, tags, arguments)
    SELECT tool, name, title, description, tags, arguments FROM tool_search_documents WHERE tool = NEW.tool;
END;
CREATE TRIGGER tools_search_rename AFTER UPDATE OF name ON tools WHEN NEW.name <> OLD.name
BEGIN
    DELETE FROM tool_search WHERE tool = NEW.id;
    INSERT INTO tool_search (tool, name, title, description, tags, arguments)
    SELECT tool, name, title, description, tags, arguments FROM tool_search_documents WHERE tool = NEW.id;
END;
CREATE TRIGGER tools_search_delete AFTER DELETE ON tools
BEGIN
    DELETE FROM tool_search WHERE tool = OLD.id;
END;
