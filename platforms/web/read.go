package web

import (
	"context"
	"errors"
	"io/fs"
	"mime"
	"net/http"
	"strconv"
	"strings"

	"herald/platforms"
)

// The sizes of what is read at once.
const (
	historyDefault = 50
	historyMost    = 200
	historyBytes   = 4 << 20 // a page of messages stops here, after at least one
	chatsDefault   = 200
	chatsMost      = 1000
)

// bootstrap answers with all that the page needs to start.
func (a *Adapter) bootstrap(w http.ResponseWriter, r *http.Request) {
	chats, err := a.readChats(r.Context(), chatsDefault)
	if err != nil {
		a.internal(w, r, err)
		return
	}
	a.mu.Lock()
	commands := a.commands
	a.mu.Unlock()
	if c, err := r.Cookie(a.door.cookieID); err == nil && a.door.locked && a.door.validSession(c.Value) {
		http.SetCookie(w, a.door.newSession(r)) // whoever uses the page stays logged in
	}
	a.answer(w, http.StatusOK, bootstrapView{
		chatsView: chats, Name: a.opts.Name, Version: a.opts.Version, Locked: a.door.locked,
		MaxText: a.opts.MaxText, MaxUpload: a.opts.MaxUpload, MaxFiles: MaxFiles,
		Commands: commandViews(commands),
	})
}

// listChats answers with the newest conversations.
func (a *Adapter) listChats(w http.ResponseWriter, r *http.Request) {
	chats, err := a.readChats(r.Context(), queryInt(r, "limit", chatsDefault, chatsMost))
	if err != nil {
		a.internal(w, r, err)
		return
	}
	a.answer(w, http.StatusOK, chats)
}

func (a *Adapter) readChats(ctx context.Context, limit int) (chatsView, error) {
	v := chatsView{Cursor: a.hub.cursor(), Chats: []chatView{}}
	rows, err := a.opts.Log.Chats(ctx, limit+1)
	if err != nil {
		return v, err
	}
	if len(rows) > limit {
		rows, v.More = rows[:limit], true
	}
	for _, row := range rows {
		e, err := decodeEntry(row.Payload)
		if err != nil {
			a.log.Error().Err(err).Int64("seq", row.Seq).Msg("unreadable entry")
			continue
		}
		v.Chats = append(v.Chats, viewChat(row, e))
	}
	return v, nil
}

// history answers with a page of a chat's messages, oldest first: the newest, or those before a number.
func (a *Adapter) history(w http.ResponseWriter, r *http.Request) {
	chat, ok := a.chatOf(w, r)
	if !ok {
		return
	}
	limit := queryInt(r, "limit", historyDefault, historyMost)
	before, err := strconv.ParseInt("0"+r.URL.Query().Get("before"), 10, 64)
	if err != nil {
		a.failBody(w, r, badRequest("before must be a message number, not %q.", r.URL.Query().Get("before")))
		return
	}
	v := historyView{Cursor: a.hub.cursor(), Messages: []messageView{}, Typing: a.isTyping(chat)}
	rows, err := a.opts.Log.List(r.Context(), chat, before, limit+1)
	if err != nil {
		a.internal(w, r, err)
		return
	}
	if len(rows) > limit {
		rows, v.More = rows[1:], true
	}
	bytes, first := 0, len(rows)
	for first > 0 && (bytes+len(rows[first-1].Payload) <= historyBytes || first == len(rows)) {
		first--
		bytes += len(rows[first].Payload)
	}
	if first > 0 {
		rows, v.More = rows[first:], true
	}
	for _, row := range rows {
		e, err := decodeEntry(row.Payload)
		if err != nil {
			a.log.Error().Err(err).Int64("seq", row.Seq).Msg("unreadable entry")
			e = entry{From: fromAgent, Text: "*This message can't be read; the log says why.*"}
		}
		v.Messages = append(v.Messages, viewMessage(chat, row.Seq, e))
	}
	a.answer(w, http.StatusOK, v)
}

// inline are the types that a browser may show from our own address: pictures that can't hold a script.
var inline = map[string]bool{
	"image/png": true, "image/jpeg": true, "image/gif": true, "image/webp": true, "image/bmp": true,
}

// playable are the types that a player in the page may load.
var playable = map[string]bool{
	"audio/mpeg": true, "audio/wave": true, "application/ogg": true, "audio/aiff": true, "audio/basic": true,
	"video/mp4": true, "video/webm": true, "video/avi": true,
}

// download answers with a stored file: a picture as one, everything else to be saved.
func (a *Adapter) download(w http.ResponseWriter, r *http.Request) {
	f, info, err := a.media.open(r.PathValue("id"))
	if errors.Is(err, fs.ErrNotExist) {
		a.fail(w, r, http.StatusNotFound, "not_found", "There is no such file.")
		return
	}
	if err != nil {
		a.internal(w, r, err)
		return
	}
	defer f.Close()
	head := make([]byte, 512)
	n, _ := f.ReadAt(head, 0)
	base, _, _ := mime.ParseMediaType(http.DetectContentType(head[:n]))
	kind, disposition := "application/octet-stream", "attachment"
	switch {
	case inline[base]:
		kind, disposition = base, "inline"
	case playable[base]:
		kind = base
	}
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Disposition", disposition+"; filename*=UTF-8''"+percent(info.Name()))
	h.Set("Cache-Control", "private, max-age=31536000, immutable")
	http.ServeContent(w, r, "", info.ModTime(), f)
}

// percent encodes a file name as RFC 8187 wants it: everything but letters, digits and a few marks.
func percent(name string) string {
	const hex = "0123456789ABCDEF"
	var b strings.Builder
	for _, c := range []byte(platforms.SafeName(name)) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', strings.IndexByte("-._~", c) >= 0:
			b.WriteByte(c)
		default:
			b.WriteByte('%')
			b.WriteByte(hex[c>>4])
			b.WriteByte(hex[c&15])
		}
	}
	return b.String()
}

// queryInt reads a positive number of the query, at most most; anything else is def.
func queryInt(r *http.Request, name string, def, most int) int {
	n, err := strconv.Atoi(r.URL.Query().Get(name))
	if err != nil || n <= 0 {
		return def
	}
	return min(n, most)
}
