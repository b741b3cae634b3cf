package signaltest

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"unicode/utf16"
)

// Person is somebody on Signal.
type Person struct {
	Number string // E.164; empty for somebody whose number the account does not know
	UUID   string
	Name   string
	// Private leaves the number out of what they send, though the contact list has it.
	Private bool
	// Hidden is somebody who is no contact: only allRecipients lists them.
	Hidden bool

	own, stranger bool
}

func (p *Person) id() string {
	if p.UUID != "" {
		return p.UUID
	}
	return p.Number
}

// Group is a group chat.
type Group struct {
	ID      string // base64
	Name    string
	Members []*Person

	left bool
}

// AddPerson puts somebody on Signal.
func (s *Server) AddPerson(p Person) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kept := &p
	for _, id := range []string{p.Number, p.UUID} {
		if id != "" {
			s.people[id] = kept
		}
	}
	s.order = append(s.order, kept)
}

// AddGroup makes a group of the account and these people, by number or UUID, and returns its id.
func (s *Server) AddGroup(name string, members ...string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := make([]byte, 32)
	copy(sum, fmt.Sprintf("group-%d-%s", len(s.groups)+1, name))
	g := &Group{ID: base64.StdEncoding.EncodeToString(sum), Name: name, Members: []*Person{s.people[s.o.Account]}}
	for _, m := range members {
		if p := s.people[m]; p != nil {
			g.Members = append(g.Members, p)
		}
	}
	s.groups[g.ID] = g
	return g.ID
}

// Leave takes the account out of a group.
func (s *Server) Leave(group string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if g := s.groups[group]; g != nil {
		g.left = true
	}
}

// Account returns the number and the UUID of the account.
func (s *Server) Account() (number, uuid string) { return s.o.Account, s.o.UUID }

// Placeholder stands for a mention in a text.
const Placeholder = "\uFFFC"

// Post is something that a person writes.
type Post struct {
	// From is who, by number or UUID. For Sync it is not used.
	From string
	// Group is a group's id, empty for a direct message to the account.
	Group string
	// To is whom the linked phone wrote to, for Sync. Empty with an empty Group is the account: Note to Self.
	To   string
	Text string
	// Mentions are who is meant by each Placeholder in Text, in order, by number or UUID.
	Mentions []string
	Styles   []Style
	Quote    *Quote
	Files    []File
	Sticker  bool
	// At is the timestamp; 0 takes the next one.
	At int64
	// Twice delivers it twice at once.
	Twice bool
}

// Write makes a person write and returns the message's timestamp.
func (s *Server) Write(p Post) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.stamp(p)
	envelope := s.envelope(p.From, at)
	envelope["dataMessage"] = s.data(p, at)
	s.emitLocked(envelope, nil)
	if p.Twice {
		s.emitLocked(envelope, nil)
	}
	return at
}

// Sync makes the account's phone write, which the daemon is linked to, and returns the timestamp.
func (s *Server) Sync(p Post) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.stamp(p)
	envelope := s.envelope(s.o.Account, at)
	sent := s.data(p, at)
	to := p.To
	if to == "" && p.Group == "" {
		to = s.o.Account
	}
	sent["destination"], sent["destinationNumber"], sent["destinationUuid"] = nil, nil, nil
	if who := s.people[to]; who != nil {
		sent["destination"], sent["destinationNumber"], sent["destinationUuid"] = orNull(who.Number), orNull(who.Number), orNull(who.UUID)
	}
	envelope["syncMessage"] = map[string]any{"sentMessage": sent}
	s.emitLocked(envelope, nil)
	return at
}

// Edit makes a person change what they wrote at a timestamp.
func (s *Server) Edit(p Post, target int64) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.stamp(p)
	envelope := s.envelope(p.From, at)
	envelope["editMessage"] = map[string]any{"targetSentTimestamp": target, "dataMessage": s.data(p, at)}
	s.emitLocked(envelope, nil)
	return at
}

// React makes a person put emoji on, or take it off, the message of author at a timestamp.
func (s *Server) React(from, group, author string, target int64, emoji string, remove bool) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.now()
	envelope := s.envelope(from, at)
	data := s.data(Post{From: from, Group: group}, at)
	number, uuid := s.shown(author)
	data["reaction"] = map[string]any{"emoji": emoji, "targetAuthor": orNull(first(number, uuid)), "targetAuthorNumber": orNull(number),
		"targetAuthorUuid": orNull(uuid), "targetSentTimestamp": target, "isRemove": remove}
	envelope["dataMessage"] = data
	s.emitLocked(envelope, nil)
	return at
}

// Types makes a person begin or stop to type.
func (s *Server) Types(from, group string, stop bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.now()
	envelope := s.envelope(from, at)
	action := "STARTED"
	if stop {
		action = "STOPPED"
	}
	typing := map[string]any{"action": action, "timestamp": at}
	if group != "" {
		typing["groupId"] = group
	}
	envelope["typingMessage"] = typing
	s.emitLocked(envelope, nil)
}

// Reads makes a person's client say that messages were read.
func (s *Server) Reads(from string, stamps ...int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.now()
	envelope := s.envelope(from, at)
	envelope["receiptMessage"] = map[string]any{"when": at, "isDelivery": false, "isRead": true, "isViewed": false, "timestamps": stamps}
	s.emitLocked(envelope, nil)
}

// Story makes a person publish a story.
func (s *Server) Story(from, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	envelope := s.envelope(from, s.now())
	envelope["storyMessage"] = map[string]any{"allowsReplies": true, "textAttachment": map[string]any{"text": text, "style": "REGULAR"}}
	s.emitLocked(envelope, nil)
}

// ProfileKey makes a person's client send an empty message, as it does when its profile changes.
func (s *Server) ProfileKey(from string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.now()
	envelope := s.envelope(from, at)
	envelope["dataMessage"] = s.data(Post{From: from}, at)
	s.emitLocked(envelope, nil)
}

// Undecryptable makes a message arrive that the daemon cannot read.
func (s *Server) Undecryptable(from string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.emitLocked(s.envelope(from, s.now()), map[string]any{"message": "invalid Whisper message: decryption failed", "type": "ProtocolInvalidMessageException"})
}

func (s *Server) stamp(p Post) int64 {
	if p.At != 0 {
		return p.At
	}
	return s.now()
}

// shown returns the ids of a person as an envelope has them.
func (s *Server) shown(id string) (number, uuid string) {
	p := s.people[id]
	if p == nil {
		return id, ""
	}
	if p.Private {
		return "", p.UUID
	}
	return p.Number, p.UUID
}

func first(ids ...string) string {
	for _, id := range ids {
		if id != "" {
			return id
		}
	}
	return ""
}

// envelope returns what every event carries. The caller holds the lock.
func (s *Server) envelope(from string, at int64) map[string]any {
	number, uuid := s.shown(from)
	name := ""
	if p := s.people[from]; p != nil {
		name = p.Name
	}
	device := 1
	return map[string]any{"source": orNull(first(number, uuid)), "sourceNumber": orNull(number), "sourceUuid": orNull(uuid), "sourceName": name,
		"sourceDevice": device, "timestamp": at, "serverReceivedTimestamp": at + 40, "serverDeliveredTimestamp": at + 60}
}

// data returns a data message. The caller holds the lock.
func (s *Server) data(p Post, at int64) map[string]any {
	d := map[string]any{"timestamp": at, "message": orNull(p.Text), "expiresInSeconds": 0, "isExpirationUpdate": false, "viewOnce": false}
	if p.Group != "" {
		g := s.groups[p.Group]
		name := ""
		if g != nil {
			name = g.Name
		}
		d["groupInfo"] = map[string]any{"groupId": p.Group, "groupName": name, "revision": 3, "type": "DELIVER"}
	}
	if len(p.Mentions) > 0 {
		d["mentions"] = s.mentions(p)
	}
	if len(p.Styles) > 0 {
		styles := []map[string]any{}
		for _, st := range p.Styles {
			styles = append(styles, map[string]any{"style": st.Kind, "start": st.Start, "length": st.Length})
		}
		d["textStyles"] = styles
	}
	if q := p.Quote; q != nil {
		number, uuid := s.shown(q.Author)
		d["quote"] = map[string]any{"id": q.Timestamp, "author": orNull(first(number, uuid)), "authorNumber": orNull(number), "authorUuid": orNull(uuid),
			"text": q.Text, "attachments": []any{}}
	}
	if p.Sticker {
		s.files["sticker/abcd"] = file{name: "sticker", mime: "image/webp", body: []byte("RIFF\x00\x00\x00\x00WEBPVP8 ")}
		d["sticker"] = map[string]any{"packId": "abcd", "stickerId": 4}
	}
	if len(p.Files) > 0 {
		d["attachments"] = s.attachments(p.Files)
	}
	return d
}

func (s *Server) mentions(p Post) []map[string]any {
	units := utf16.Encode([]rune(p.Text))
	out := []map[string]any{}
	at := 0
	for _, who := range p.Mentions {
		i := slices.Index(units[at:], 0xfffc)
		if i < 0 {
			break
		}
		number, uuid := s.shown(who)
		out = append(out, map[string]any{"name": first(number, uuid), "number": orNull(number), "uuid": orNull(uuid), "start": at + i, "length": 1})
		at += i + 1
	}
	return out
}

func (s *Server) attachments(files []File) []map[string]any {
	out := []map[string]any{}
	for _, f := range files {
		ext := ""
		if i := strings.LastIndexByte(f.Name, '.'); i >= 0 {
			ext = f.Name[i:]
		}
		id := fmt.Sprintf("att%04d%s", len(s.files)+1, ext)
		s.files[id] = file{name: f.Name, mime: f.MIME, body: f.Body}
		out = append(out, map[string]any{"contentType": f.MIME, "filename": orNull(f.Name), "id": id, "size": len(f.Body), "width": nil, "height": nil,
			"caption": nil, "uploadTimestamp": nil})
	}
	return out
}
