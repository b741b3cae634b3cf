-- The search index. It is derived from messages and can be dropped and built again at any time; it is no
-- migration, so that a change here only needs a new searchVersion.
--
-- messages_words is what can be found by words, messages_grams what can be found by any three characters.
-- Notices are no conversation, and a summary only repeats rows that stay findable. Tool results are kept to
-- their beginning among the words and are left out of the grams, which take three times the text's size.
DROP TABLE IF EXISTS messages_fts;
DROP TABLE IF EXISTS messages_tri;
DROP VIEW IF EXISTS messages_words;
DROP VIEW IF EXISTS messages_grams;

CREATE VIEW messages_words AS
SELECT id, session,
       CASE role WHEN 'tool' THEN substr(content, 1, 8000) ELSE content END AS content,
       CASE tool_calls WHEN '' THEN tool_name ELSE tool_name || ' ' || tool_calls END AS tools
FROM messages
WHERE kind NOT IN ('notice', 'summary');

CREATE VIEW messages_grams AS
SELECT id, session, content
FROM messages
WHERE kind NOT IN ('notice', 'summary') AND role <> 'tool';

CREATE VIRTUAL TABLE messages_fts USING fts5 (
    content, tools,
    content = 'messages_words', content_rowid = 'id',
    tokenize = 'unicode61 remove_diacritics 2'
);
CREATE VIRTUAL TABLE messages_tri USING fts5 (
    content,
    content = 'messages_grams', content_rowid = 'id',
    tokenize = 'trigram'
);
