-- +goose Up
-- Runs are read newest first, of one job or of one state: neither may cost what all jobs have ever done.
CREATE INDEX runs_job ON runs (job, id);
CREATE INDEX runs_state ON runs (state, id);

PRAGMA user_version = 4;
