-- +goose Up
-- The visible messages of platforms whose server is Herald itself.
CREATE TABLE log (
    seq     INTEGER PRIMARY KEY AUTOINCREMENT,
    chat    TEXT NOT NULL,
    nonce   TEXT NOT NULL,
    payload BLOB NOT NULL
) STRICT;
CREATE INDEX log_chat ON log (chat, seq);
CREATE UNIQUE INDEX log_nonce ON log (chat, nonce) WHERE nonce <> '';

PRAGMA user_version = 2;
