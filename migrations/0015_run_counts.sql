-- How many runs ended, by time, tool and how long they took, so that charts need not read the runs themselves. Triggers
-- count, so that the previous release, which does not know of it, counts too.

-- The lower bounds of how long runs took: a quarter of a power of two apart, so that a reading is right within a tenth.
CREATE TABLE run_took (
    from_ms INTEGER NOT NULL PRIMARY KEY
) STRICT;
INSERT INTO run_took (from_ms) VALUES (0), (1), (2), (3);
INSERT INTO run_took (from_ms)
WITH RECURSIVE octave (low) AS (SELECT 4 UNION ALL SELECT low * 2 FROM octave WHERE low < 134217728)
SELECT low + low / 4 * quarter.value
FROM octave, (SELECT 0 AS value UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3) quarter;

-- Three widths: five minutes for the last days, half an hour and three hours for as long as runs are kept.
CREATE TABLE run_counts (
    width     INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    principal TEXT    NOT NULL,
    tool_name TEXT    NOT NULL,
    from_ms   INTEGER NOT NULL,
    calls     INTEGER NOT NULL,
    failures  INTEGER NOT NULL,
    PRIMARY KEY (width, at, principal, tool_name, from_ms)
) STRICT, WITHOUT ROWID;

INSERT INTO run_counts (width, at, principal, tool_name, from_ms, calls, failures)
SELECT width.value, queued_at - queued_at % width.value, principal, tool_name,
       (SELECT max(from_ms) FROM run_took WHERE from_ms <= max(COALESCE(ended_at, queued_at) - queued_at, 0)) AS took,
       count(*), sum(is_error)
FROM runs, (SELECT 300000 AS value UNION ALL SELECT 1800000 UNION ALL SELECT 10800000) width
WHERE ending IS NOT NULL
GROUP BY 1, 2, 3, 4, 5;

CREATE TRIGGER runs_count_insert AFTER INSERT ON runs WHEN NEW.ending IS NOT NULL
BEGIN
    INSERT INTO run_counts (width, at, principal, tool_name, from_ms, calls, failures)
    SELECT width.value, NEW.queued_at - NEW.queued_at % width.value, NEW.principal, NEW.tool_name,
           (SELECT max(from_ms) FROM run_took
            WHERE from_ms <= max(COALESCE(NEW.ended_at, NEW.queued_at) - NEW.queued_at, 0)), 1, NEW.is_error
    FROM (SELECT 300000 AS value UNION ALL SELECT 1800000 UNION ALL SELECT 10800000) width WHERE true
    ON CONFLICT (width, at, principal, tool_name, from_ms)
    DO UPDATE SET calls = calls + 1, failures = failures + excluded.failures;
END;
CREATE TRIGGER runs_count_update AFTER UPDATE OF ending ON runs WHEN OLD.ending IS NULL AND NEW.ending IS NOT NULL
BEGIN
    INSERT INTO run_counts (width, at, principal, tool_name, from_ms, calls, failures)
    SELECT width.value, NEW.queued_at - NEW.queued_at % width.value, NEW.principal, NEW.tool_name,
           (SELECT max(from_ms) FROM run_took
            WHERE from_ms <= max(COALESCE(NEW.ended_at, NEW.queued_at) - NEW.queued_at, 0)), 1, NEW.is_error
    FROM (SELECT 300000 AS value UNION ALL SELECT 1800000 UNION ALL SELECT 10800000) width WHERE true
    ON CONFLICT (width, at, principal, tool_name, from_ms)
    DO UPDATE SET calls = calls + 1, failures = failures + excluded.failures;
END;

-- Lists of runs by how they ended, of all tools and of one.
CREATE INDEX runs_by_ending ON runs (ending, id) WHERE ending IS NOT NULL;
CREATE INDEX runs_by_tool_ending ON runs (tool_name, ending, id) WHERE ending IS NOT NULL;
