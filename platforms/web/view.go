package web

import (
	"time"

	"herald/platforms"
)

// The views are what the page gets, as JSON. page/js reads them by these names.

type messageView struct {
	Chat     platforms.ChatID `json:"chat"`
	Seq      int64            `json:"seq"`
	From     string           `json:"from"`
	Text     string           `json:"text"`
	HTML     string           `json:"html,omitempty"`
	At       time.Time        `json:"at"`
	Edited   time.Time        `json:"edited,omitzero"`
	Title    string           `json:"title,omitempty"`
	Client   string           `json:"client,omitempty"`
	Pending  bool             `json:"pending,omitempty"`
	Interim  bool             `json:"interim,omitempty"`
	Progress bool             `json:"progress,omitempty"`
	Silent   bool             `json:"silent,omitempty"`
	Files    []fileView       `json:"files,omitempty"`
	Buttons  [][]buttonView   `json:"buttons,omitempty"`
	Reply    *quote           `json:"reply,omitempty"`
}

type fileView struct {
	ID   string                   `json:"id"`
	Name string                   `json:"name"`
	MIME string                   `json:"mime"`
	Size int64                    `json:"size"`
	Kind platforms.AttachmentKind `json:"kind"`
	Note string                   `json:"note,omitempty"`
	URL  string                   `json:"url"`
}

type buttonView struct {
	Label string `json:"label"`
	Data  string `json:"data"`
	Style string `json:"style,omitempty"`
}

type chatView struct {
	ID      platforms.ChatID `json:"id"`
	Title   string           `json:"title"`
	Preview string           `json:"preview"`
	From    string           `json:"from"`
	At      time.Time        `json:"at"`
	Seq     int64            `json:"seq"`
}

type historyView struct {
	Cursor   string        `json:"cursor"`
	Messages []messageView `json:"messages"`
	More     bool          `json:"more"`
	Typing   bool          `json:"typing"`
}

type chatsView struct {
	Cursor string     `json:"cursor"`
	Chats  []chatView `json:"chats"`
	More   bool       `json:"more"`
}

type bootstrapView struct {
	chatsView
	Name      string        `json:"name"`
	Version   string        `json:"version"`
	Locked    bool          `json:"locked"`
	MaxText   int64         `json:"max_text"`
	MaxUpload int64         `json:"max_upload"`
	MaxFiles  int           `json:"max_files"`
	Commands  []commandView `json:"commands"`
}

type commandView struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	Args        string `json:"args,omitempty"`
}

type typingView struct {
	Chat  platforms.ChatID `json:"chat"`
	ForMS int64            `json:"for_ms"`
}

type clickedView struct {
	Chat    platforms.ChatID    `json:"chat"`
	Message platforms.MessageID `json:"message"`
	Reply   string              `json:"reply"`
	Text    string              `json:"text"`
}

type removedView struct {
	Chat platforms.ChatID `json:"chat"`
	Seq  int64            `json:"seq"`
}

type sentView struct {
	Message messageView `json:"message"`
}

func commandViews(list []platforms.CommandInfo) []commandView {
	out := make([]commandView, 0, len(list))
	for _, c := range list {
		out = append(out, commandView(c))
	}
	return out
}

// viewMessage renders an entry for the page.
func viewMessage(chat platforms.ChatID, seq int64, e entry) messageView {
	v := messageView{
		Chat: chat, Seq: seq, From: e.From, Text: e.Text, At: e.At, Edited: e.Edited, Title: e.Title,
		Client: e.Client, Pending: e.Pending, Interim: e.Interim, Progress: e.Progress, Silent: e.Silent,
		Reply: e.Reply,
	}
	if e.From == fromAgent {
		v.HTML = RenderMarkdown(e.Text)
	}
	for _, f := range e.Files {
		v.Files = append(v.Files, fileView{
			ID: f.ID, Name: f.Name, MIME: f.MIME, Size: f.Size, Kind: f.Kind, Note: f.Note,
			URL: "/api/chat/files/" + f.ID,
		})
	}
	for _, row := range e.Buttons {
		var r []buttonView
		for _, b := range row {
			r = append(r, buttonView(b))
		}
		v.Buttons = append(v.Buttons, r)
	}
	return v
}

func viewChat(row platforms.LogEntry, e entry) chatView {
	preview := shorten(e.Text, previewLen)
	if preview == "" && len(e.Files) > 0 {
		preview = e.Files[0].Name
	}
	title := e.Title
	if title == "" {
		title = titleFrom(e.Text, e.Files)
	}
	return chatView{ID: row.Chat, Title: title, Preview: preview, From: e.From, At: e.At, Seq: row.Seq}
}
