package signaltest

import (
	"encoding/base64"
	"fmt"
	"mime"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Message is one of the account's own, as people see it.
type Message struct {
	Chat      string // a group id, or the UUID (else the number) of a person
	Timestamp int64
	Text      string
	Styles    []Style
	Mentions  []Style // Kind is who
	Files     []File
	Voice     bool
	Quote     *Quote
	Edited    bool
}

// Style is a range of a text in UTF-16 units.
type Style struct {
	Start, Length int
	Kind          string
}

// File is an attachment that people see.
type File struct {
	Name, MIME string
	Body       []byte
}

// Quote is what a message quotes.
type Quote struct {
	Timestamp int64
	Author    string // UUID, else number
	Text      string
}

type file struct {
	name, mime string
	body       []byte
}

var (
	styleForm   = regexp.MustCompile(`^(\d+):(\d+):(.+)$`)
	styleKinds  = []string{"BOLD", "ITALIC", "SPOILER", "STRIKETHROUGH", "MONOSPACE"}
	dataURIForm = regexp.MustCompile(`^data:([^;,]+/[^;,]+)?((?:;[^;,=]+=[^;,=]*)*)(;base64)?,`)
)

// Units returns how long a text is in UTF-16 units.
func Units(text string) int { return len(utf16.Encode([]rune(text))) }

func (s *Server) send(_ *http.Request, p Params) (any, error) {
	to, err := s.targets(p)
	if err != nil {
		return nil, err
	}
	m := Message{Text: p.String("message"), Voice: p.Bool("voiceNote")}
	if units := Units(m.Text); units > s.o.MaxText {
		return nil, userError(fmt.Sprintf("Message is too long: %d of %d", units, s.o.MaxText))
	}
	if m.Styles, err = ranges(p.Strings("textStyle"), m.Text, "textStyle"); err != nil {
		return nil, err
	}
	for _, style := range m.Styles {
		if !slices.Contains(styleKinds, style.Kind) {
			return nil, userError("Invalid style: " + style.Kind)
		}
	}
	if m.Mentions, err = ranges(p.Strings("mention"), m.Text, "mention"); err != nil {
		return nil, err
	}
	if m.Files, err = s.readFiles(p.Strings("attachment")); err != nil {
		return nil, err
	}
	if m.Quote, err = s.quoteOf(p); err != nil {
		return nil, err
	}
	if m.Text == "" && len(m.Files) == 0 && p.String("sticker") == "" {
		return nil, userError("Sending empty message is not allowed, either a message, attachment or sticker must be given.")
	}
	return s.deliver(to, m, p.Int("editTimestamp"))
}

// deliver shows the message to everybody who can be reached.
func (s *Server) deliver(to []target, m Message, edits int64) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m.Timestamp = s.now()
	answer := s.results(to, m.Timestamp)
	reached := 0
	for _, t := range to {
		if !s.reaches(t) {
			continue
		}
		reached++
		m.Chat = t.key()
		s.typing[m.Chat] = false
		if edits != 0 {
			i := slices.IndexFunc(s.messages, func(old Message) bool { return old.Chat == m.Chat && old.Timestamp == edits })
			if i >= 0 {
				m.Edited = true
				s.messages[i] = m
				continue
			}
		}
		s.messages = append(s.messages, m)
	}
	if reached == 0 {
		e := &rpcError{Code: codeUser, Message: "Failed to send message", Data: map[string]any{"response": answer}}
		switch s.onlyKind(answer) {
		case "RATE_LIMIT_FAILURE":
			e.Code, e.Message = codeRateLimit, "Failed to send message due to rate limiting"
		case "IDENTITY_FAILURE":
			e.Code, e.Message = codeUntrusted, "Failed to send message due to untrusted identities"
		}
		return nil, e
	}
	return answer, nil
}

// reaches tells whether anybody at the target gets the message. The caller holds the lock.
func (s *Server) reaches(t target) bool {
	if t.group == nil {
		return s.failure(t.person) == ""
	}
	for _, m := range t.group.Members {
		if !m.own && s.failure(m) == "" {
			return true
		}
	}
	return len(t.group.Members) == 0
}

// failure is the result type for a person, "" for success. The caller holds the lock.
func (s *Server) failure(p *Person) string {
	if s.offline {
		return "NETWORK_FAILURE"
	}
	if p.stranger {
		return "UNREGISTERED_FAILURE"
	}
	for _, id := range []string{p.UUID, p.Number} {
		if kind := s.refuse[id]; kind != "" && id != "" {
			return kind
		}
	}
	return ""
}

// results is what a call answers: one entry per person. The caller holds the lock.
func (s *Server) results(to []target, timestamp int64) map[string]any {
	results := []map[string]any{}
	add := func(p *Person, group string) {
		kind := s.failure(p)
		if kind == "" {
			kind = "SUCCESS"
		}
		r := map[string]any{"recipientAddress": map[string]any{"uuid": orNull(p.UUID), "number": orNull(p.Number), "username": nil}}
		if group != "" {
			r["groupId"] = group
		}
		if name, after, ok := strings.Cut(kind, "/"); ok { // RATE_LIMIT_FAILURE/30: with a proof that is asked for
			kind = name
			r["retryAfterSeconds"], _ = strconv.Atoi(after)
			r["token"] = "a-challenge-token"
		}
		r["type"] = kind
		results = append(results, r)
	}
	for _, t := range to {
		if t.group == nil {
			add(t.person, "")
			continue
		}
		for _, m := range t.group.Members {
			if !m.own {
				add(m, t.group.ID)
			}
		}
	}
	return map[string]any{"timestamp": timestamp, "results": results}
}

// onlyKind returns the type that all results share, "" when they differ.
func (s *Server) onlyKind(answer map[string]any) string {
	kind := ""
	for _, r := range answer["results"].([]map[string]any) {
		if k := r["type"].(string); kind == "" || kind == k {
			kind = k
		} else {
			return ""
		}
	}
	return kind
}

// Refuse makes sends to a person fail with a result type such as UNREGISTERED_FAILURE, NETWORK_FAILURE,
// IDENTITY_FAILURE or RATE_LIMIT_FAILURE; "/30" behind it asks for a proof and a wait of 30 seconds. "" ends it.
func (s *Server) Refuse(person, kind string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kind == "" {
		delete(s.refuse, person)
		return
	}
	s.refuse[person] = kind
}

func (s *Server) quoteOf(p Params) (*Quote, error) {
	stamp := p.Int("quoteTimestamp")
	if stamp == 0 {
		return nil, nil
	}
	author := p.String("quoteAuthor")
	s.mu.Lock()
	defer s.mu.Unlock()
	who := s.people[author]
	if who == nil {
		return nil, userError("Invalid quote author '" + author + "'")
	}
	return &Quote{Timestamp: stamp, Author: who.id(), Text: p.String("quoteMessage")}, nil
}

// ranges reads start:length:what and checks that it lies inside the text and cuts no surrogate pair.
func ranges(list []string, text, name string) ([]Style, error) {
	units := utf16.Encode([]rune(text))
	var out []Style
	for _, one := range list {
		m := styleForm.FindStringSubmatch(one)
		if m == nil {
			return nil, userError("Invalid " + name + " syntax (" + one + ") expected 'start:length:" + strings.ToUpper(name) + "'")
		}
		start, _ := strconv.Atoi(m[1])
		length, _ := strconv.Atoi(m[2])
		if length <= 0 || start+length > len(units) {
			return nil, userError(fmt.Sprintf("Invalid %s range (%s): the text has %d units", name, one, len(units)))
		}
		for _, at := range []int{start, start + length} {
			if at < len(units) && units[at] >= 0xdc00 && units[at] <= 0xdfff {
				return nil, userError("Invalid " + name + " range (" + one + "): it cuts a surrogate pair")
			}
		}
		out = append(out, Style{start, length, m[3]})
	}
	return out, nil
}

// HidePaths makes the daemon unable to read files by their path, as one in a container or of another user is.
func (s *Server) HidePaths(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pathless = on
}

// readFiles takes attachments as paths on the daemon's machine or as data URIs.
func (s *Server) readFiles(list []string) ([]File, error) {
	var out []File
	s.mu.Lock()
	pathless := s.pathless
	s.mu.Unlock()
	for _, one := range list {
		f, err := readFile(one)
		if pathless && !strings.HasPrefix(one, "data:") {
			err = fmt.Errorf("%s: (Permission denied)", one)
		}
		if err != nil {
			return nil, &rpcError{Code: codeUnexpected, Message: "Failed to send message: " + err.Error() + " (AttachmentInvalidException)"}
		}
		if int64(len(f.Body)) > s.o.MaxFile {
			return nil, &rpcError{Code: codeUnexpected, Message: "Failed to send message: " + f.Name + ": file is too big (AttachmentInvalidException)"}
		}
		out = append(out, f)
	}
	return out, nil
}

func readFile(ref string) (File, error) {
	if strings.HasPrefix(ref, "data:") {
		m := dataURIForm.FindStringSubmatch(ref)
		if m == nil || m[3] == "" {
			return File{}, fmt.Errorf("data URI is invalid")
		}
		f := File{MIME: m[1]}
		for _, param := range strings.Split(m[2], ";") {
			if name, ok := strings.CutPrefix(param, "filename="); ok {
				f.Name = name
			}
		}
		var err error
		f.Body, err = base64.StdEncoding.DecodeString(ref[len(m[0]):])
		return f, err
	}
	if !filepath.IsAbs(ref) {
		return File{}, fmt.Errorf("%s: (No such file or directory)", ref)
	}
	body, err := os.ReadFile(ref)
	if err != nil {
		return File{}, fmt.Errorf("%s: (No such file or directory)", ref)
	}
	return File{Name: filepath.Base(ref), MIME: mime.TypeByExtension(filepath.Ext(ref)), Body: body}, nil
}

// Visible returns the account's messages in a chat (a group id, a number or a UUID) as people see them, oldest first.
func (s *Server) Visible(chat string) []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := s.keyOf(chat)
	var out []Message
	for _, m := range s.messages {
		if m.Chat == key {
			out = append(out, m)
		}
	}
	return out
}
