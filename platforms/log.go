package platforms

import "context"

// Log keeps the visible messages of a platform whose server is Herald itself (the browser page): what a
// chat service would keep on its side. The store implements it; payloads are the platform's own JSON.
type Log interface {
	// Append adds an entry to a chat and returns its sequence number, which grows by one or more within
	// the whole log. A nonce that the chat has seen returns the first entry's number and changes nothing;
	// an empty nonce is never a repetition.
	Append(ctx context.Context, chat ChatID, nonce string, payload []byte) (seq int64, err error)
	// Update replaces an entry's payload. ErrNoEntry when there is none.
	Update(ctx context.Context, chat ChatID, seq int64, payload []byte) error
	// Remove deletes an entry; one that is gone already is no error.
	Remove(ctx context.Context, chat ChatID, seq int64) error
	// List returns at most limit entries of a chat with a number below before (0: no bound), oldest first:
	// the newest limit of them.
	List(ctx context.Context, chat ChatID, before int64, limit int) ([]LogEntry, error)
	// Chats returns the chats that have entries, with their newest entry, newest first, at most limit.
	Chats(ctx context.Context, limit int) ([]LogEntry, error)
}

// LogEntry is one entry of a Log.
type LogEntry struct {
	Chat    ChatID
	Seq     int64
	Payload []byte
}

// ErrNoEntry says that a Log has no such entry.
var ErrNoEntry = errNoEntry{}

type errNoEntry struct{}

func (errNoEntry) Error() string { return "no such entry" }
