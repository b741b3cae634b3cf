-- +goose Up
-- Times are nanoseconds since 1970, UTC; 0 means "not set". JSON is TEXT.
PRAGMA application_id = 1213352516;

CREATE TABLE sessions (
    id           TEXT PRIMARY KEY,
    key          TEXT NOT NULL,
    platform     TEXT NOT NULL,
    account      TEXT NOT NULL,
    chat         TEXT NOT NULL,
    chat_type    TEXT NOT NULL,
    user         TEXT NOT NULL,
    user_alt     TEXT NOT NULL,
    shared       INTEGER NOT NULL,
    origin       TEXT NOT NULL,
    title        TEXT NOT NULL DEFAULT '',
    title_folded TEXT NOT NULL DEFAULT '',
    parent       TEXT REFERENCES sessions (id),
    created      INTEGER NOT NULL,
    updated      INTEGER NOT NULL,
    ended        INTEGER NOT NULL DEFAULT 0,
    end_reason   TEXT NOT NULL DEFAULT '',
    messages     INTEGER NOT NULL DEFAULT 0,
    calls        INTEGER NOT NULL DEFAULT 0,
    input        INTEGER NOT NULL DEFAULT 0,
    output       INTEGER NOT NULL DEFAULT 0,
    cache_read   INTEGER NOT NULL DEFAULT 0,
    cache_write  INTEGER NOT NULL DEFAULT 0,
    reasoning    INTEGER NOT NULL DEFAULT 0,
    tool_calls   INTEGER NOT NULL DEFAULT 0,
    last_prompt  INTEGER NOT NULL DEFAULT 0,
    last_context INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX sessions_key ON sessions (key);
CREATE INDEX sessions_user ON sessions (platform, user);
CREATE INDEX sessions_parent ON sessions (parent) WHERE parent IS NOT NULL;
CREATE INDEX sessions_ended ON sessions (ended) WHERE ended <> 0;
CREATE UNIQUE INDEX sessions_title ON sessions (title) WHERE title <> '';

-- Beside the sessions, because a session's row is rewritten with each message and a prompt is large.
CREATE TABLE prompts (
    session TEXT PRIMARY KEY REFERENCES sessions (id),
    prompt  TEXT NOT NULL,
    tools   TEXT NOT NULL
) STRICT;

CREATE TABLE routes (
    key     TEXT PRIMARY KEY,
    session TEXT REFERENCES sessions (id),
    options TEXT NOT NULL DEFAULT '{}'
) STRICT, WITHOUT ROWID;
CREATE INDEX routes_session ON routes (session);

-- pos orders a session's rows; it is the id, but for a summary, which stands where the rows it replaces end.
CREATE TABLE messages (
    id           INTEGER PRIMARY KEY AUTOINCREMENT,
    session      TEXT NOT NULL REFERENCES sessions (id),
    pos          INTEGER NOT NULL,
    active       INTEGER NOT NULL DEFAULT 1,
    compacted    INTEGER NOT NULL DEFAULT 0,
    turn         INTEGER NOT NULL,
    role         TEXT NOT NULL,
    kind         TEXT NOT NULL,
    content      TEXT NOT NULL,
    attachments  TEXT NOT NULL,
    tool_calls   TEXT NOT NULL,
    tool_call_id TEXT NOT NULL,
    tool_name    TEXT NOT NULL,
    reasoning    TEXT NOT NULL,
    replay       TEXT NOT NULL,
    sender       TEXT NOT NULL,
    platform_id  TEXT NOT NULL,
    at           INTEGER NOT NULL,
    tokens       INTEGER NOT NULL
) STRICT;
CREATE INDEX messages_session ON messages (session, active, pos);

CREATE TABLE inbox (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    platform TEXT NOT NULL,
    account  TEXT NOT NULL,
    event_id TEXT NOT NULL,
    key      TEXT NOT NULL,
    event    TEXT NOT NULL,
    state    TEXT NOT NULL,
    turn     INTEGER NOT NULL,
    reason   TEXT NOT NULL,
    at       INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX inbox_event ON inbox (platform, account, event_id);
CREATE INDEX inbox_open ON inbox (state) WHERE state IN ('new', 'claimed');
CREATE INDEX inbox_turn ON inbox (turn) WHERE turn <> 0;

CREATE TABLE turns (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    session  TEXT NOT NULL,
    key      TEXT NOT NULL,
    state    TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    address  TEXT NOT NULL,
    reply_to TEXT NOT NULL,
    reason   TEXT NOT NULL,
    began    INTEGER NOT NULL,
    ended    INTEGER NOT NULL
) STRICT;
CREATE INDEX turns_running ON turns (state) WHERE state = 'running';

CREATE TABLE calls (
    id      INTEGER PRIMARY KEY,
    turn    INTEGER NOT NULL REFERENCES turns (id),
    call    TEXT NOT NULL,
    name    TEXT NOT NULL,
    state   TEXT NOT NULL,
    started INTEGER NOT NULL,
    ended   INTEGER NOT NULL
) STRICT;
CREATE UNIQUE INDEX calls_call ON calls (turn, call);

CREATE TABLE outbox (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,
    lane       TEXT NOT NULL,
    kind       TEXT NOT NULL,
    state      TEXT NOT NULL,
    turn       INTEGER NOT NULL,
    session    TEXT NOT NULL,
    message    TEXT NOT NULL,
    sent       TEXT NOT NULL,
    attempts   INTEGER NOT NULL,
    not_before INTEGER NOT NULL,
    error      TEXT NOT NULL,
    created    INTEGER NOT NULL,
    updated    INTEGER NOT NULL
) STRICT;
CREATE INDEX outbox_open ON outbox (state) WHERE state IN ('pending', 'attempting');
CREATE INDEX outbox_unknown ON outbox (state) WHERE state = 'unknown';
CREATE INDEX outbox_turn ON outbox (turn) WHERE turn <> 0;

CREATE TABLE state (
    space TEXT NOT NULL,
    name  TEXT NOT NULL,
    data  TEXT NOT NULL,
    at    INTEGER NOT NULL,
    PRIMARY KEY (space, name)
) STRICT, WITHOUT ROWID;

-- Small numbers of the store itself: the state of the search index.
CREATE TABLE meta (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

PRAGMA user_version = 1;
