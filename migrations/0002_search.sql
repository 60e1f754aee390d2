-- Full-text search over the latest version of each tool. Triggers keep it, so that the previous release, which does
-- not know of it, keeps it too.
CREATE VIRTUAL TABLE tool_search USING fts5 (
    tool UNINDEXED, name, title, description, tags,
    tokenize = 'unicode61 remove_diacritics 2', prefix = '2 3'
);

INSERT INTO tool_search (tool, name, title, description, tags)
SELECT t.id, t.name, v.title, v.description, (SELECT group_concat(value, ' ') FROM json_each(v.tags))
FROM tools t JOIN tool_versions v ON v.tool = t.id AND v.number = t.latest_version;

CREATE TRIGGER tool_versions_search_insert AFTER INSERT ON tool_versions
BEGIN
    DELETE FROM tool_search WHERE tool = NEW.tool;
    INSERT INTO tool_search (tool, name, title, description, tags)
    SELECT NEW.tool, t.name, NEW.title, NEW.description, (SELECT group_concat(value, ' ') FROM json_each(NEW.tags))
    FROM tools t WHERE t.id = NEW.tool;
END;
CREATE TRIGGER tools_search_rename AFTER UPDATE OF name ON tools WHEN NEW.name <> OLD.name
BEGIN
    UPDATE tool_search SET name = NEW.name WHERE tool = NEW.id;
END;
CREATE TRIGGER tools_search_delete AFTER DELETE ON tools
BEGIN
    DELETE FROM tool_search WHERE tool = OLD.id;
END;
