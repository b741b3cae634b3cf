package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"herald/platforms"
)

// Who wrote an entry.
const (
	fromUser  = "user"
	fromAgent = "agent"
)

// entry is what the log keeps of one visible message, as JSON. Fields may be added, never renamed.
type entry struct {
	From string    `json:"from"`
	Text string    `json:"text,omitempty"` // plain from the person, Markdown from the agent
	At   time.Time `json:"at"`
	// Title is the chat's title, carried on by every entry, so that a list of newest entries has it.
	Title string `json:"title,omitempty"`
	// Client is the id that the browser gave its message.
	Client string `json:"client,omitempty"`
	// Language is the sender's language tag, kept so that a repeated Accept offers the same event.
	Language string `json:"language,omitempty"`
	// Pending: the message is not yet known to be accepted.
	Pending  bool                 `json:"pending,omitempty"`
	Interim  bool                 `json:"interim,omitempty"`
	Progress bool                 `json:"progress,omitempty"`
	Silent   bool                 `json:"silent,omitempty"`
	Edited   time.Time            `json:"edited,omitzero"`
	Files    []file               `json:"files,omitempty"`
	Buttons  [][]platforms.Button `json:"buttons,omitempty"`
	Reply    *quote               `json:"reply,omitempty"`
}

// file is one stored file of an entry.
type file struct {
	ID   string                   `json:"id"`
	Name string                   `json:"name"`
	MIME string                   `json:"mime"`
	Size int64                    `json:"size"`
	Kind platforms.AttachmentKind `json:"kind"`
	Note string                   `json:"note,omitempty"` // the file's caption
}

// quote is the message that an entry answers.
type quote struct {
	Seq  int64  `json:"seq"`
	From string `json:"from"`
	Text string `json:"text"`
}

// The lengths of derived texts, in runes.
const (
	titleLen   = 60
	previewLen = 120
)

// titleFrom makes a chat's title from its first message: the first line that has text, or the name of the
// first file.
func titleFrom(text string, files []file) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(line), "#>*`")); line != "" {
			return shorten(line, titleLen)
		}
	}
	if len(files) > 0 {
		return shorten(files[0].Name, titleLen)
	}
	return "New chat"
}

// shorten cuts s to n runes, the last of them an ellipsis when something was cut, on one line.
func shorten(s string, n int) string {
	if len(s) > 8*n {
		s = strings.ToValidUTF8(s[:8*n], "")
	}
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	return strings.TrimSpace(string([]rune(s)[:n-1])) + "…"
}

func (e entry) encode() ([]byte, error) { return json.Marshal(e) }

func decodeEntry(payload []byte) (entry, error) {
	var e entry
	if err := json.Unmarshal(payload, &e); err != nil {
		return entry{}, fmt.Errorf("log entry: %w", err)
	}
	return e, nil
}

// load reads one entry. found is false when there is none.
func (a *Adapter) load(ctx context.Context, chat platforms.ChatID, seq int64) (e entry, found bool, err error) {
	rows, err := a.opts.Log.List(ctx, chat, seq+1, 1)
	if err != nil {
		return entry{}, false, err
	}
	if len(rows) == 0 || rows[len(rows)-1].Seq != seq {
		return entry{}, false, nil
	}
	e, err = decodeEntry(rows[len(rows)-1].Payload)
	return e, err == nil, err
}

// titleOf returns the title that a new entry of the chat carries: the chat's own, or for a new chat one
// made from the entry.
func (a *Adapter) titleOf(ctx context.Context, chat platforms.ChatID, e entry) (string, error) {
	a.mu.Lock()
	title, ok := a.titles[chat]
	a.mu.Unlock()
	if ok {
		return title, nil
	}
	rows, err := a.opts.Log.List(ctx, chat, 0, 1)
	if err != nil {
		return "", err
	}
	if len(rows) > 0 {
		if newest, err := decodeEntry(rows[0].Payload); err == nil {
			title = newest.Title
		}
	}
	if title == "" {
		title = titleFrom(e.Text, e.Files)
	}
	return title, nil
}

// keepTitle remembers the title of a chat that is now in the log.
func (a *Adapter) keepTitle(chat platforms.ChatID, title string) {
	const most = 4096 // chats; more than a person has, and a bound on memory
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.titles) >= most {
		clear(a.titles)
	}
	a.titles[chat] = title
}

// parseSeq reads a message id of ours.
func parseSeq(id platforms.MessageID) (int64, error) {
	n, err := strconv.ParseInt(string(id), 10, 64)
	if err != nil || n <= 0 {
		return 0, fmt.Errorf("message id %q is no positive number", id)
	}
	return n, nil
}

func messageID(seq int64) platforms.MessageID {
	return platforms.MessageID(strconv.FormatInt(seq, 10))
}

// checkAddress refuses an address that is not ours.
func checkAddress(at platforms.Address) error {
	var err error
	switch {
	case at.Platform != Platform || at.Account != Account:
		err = fmt.Errorf("address %q is not of %s", at, account)
	case !validID(string(at.Chat)):
		err = fmt.Errorf("chat id %q is not 8 to 64 letters, digits, '-' and '_'", at.Chat)
	case at.Thread != "":
		err = errors.New("the browser chat has no threads")
	}
	if err != nil {
		return &platforms.SendError{Kind: platforms.BadRequest, Certainty: platforms.NotSent, Err: err}
	}
	return nil
}

// validID reports whether s has the form of the ids that the page makes for chats, messages and clicks.
func validID(s string) bool {
	if len(s) < 8 || len(s) > 64 {
		return false
	}
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}
