package signaltest

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"herald/platforms/platformtest/faults"
)

// method is one call of the daemon. multi marks those that need no account.
type method struct {
	run   func(s *Server, r *http.Request, p Params) (any, error)
	multi bool
}

// Routes are the methods of the daemon and its other paths, with how often they were called in this process.
var Routes = faults.NewRoutes("signaltest")

// ForOthers are routes that our adapter does not call. The tests of this package do: the recorded answers of a real daemon hold it.
var ForOthers = []string{"version"}

// The paths that are no methods.
const (
	routeEvents = "GET events"
	routeCheck  = "GET check"
)

// methods are what the daemon knows. It is a function, because a method may call back into the server.
func methods() map[string]method {
	return map[string]method{
		"version": {func(*Server, *http.Request, Params) (any, error) {
			return map[string]string{"version": "0.13.19"}, nil
		}, true},
		"listAccounts":  {(*Server).listAccounts, true},
		"startLink":     {(*Server).startLink, true},
		"finishLink":    {(*Server).finishLink, true},
		"send":          {(*Server).send, false},
		"sendTyping":    {(*Server).sendTyping, false},
		"sendReaction":  {(*Server).sendReaction, false},
		"sendReceipt":   {(*Server).sendReceipt, false},
		"getAttachment": {(*Server).getAttachment, false},
		"getSticker":    {(*Server).getAttachment, false},
		"listContacts":  {(*Server).listContacts, false},
		"listGroups":    {(*Server).listGroups, false},
	}
}

// run carries out one call. In single-account mode the methods that need several accounts do not exist.
func (s *Server) run(r *http.Request, name string, p Params) (any, error) {
	Routes.Hit(name)
	m, ok := methods()[name]
	if !ok || (m.multi && !s.o.Multi && name != "version") {
		return nil, &rpcError{Code: codeUnknownMethod, Message: "Method not implemented"}
	}
	if !m.multi && s.o.Multi {
		account := p.String("account")
		if account == "" {
			return nil, &rpcError{Code: codeParams, Message: "Method requires valid account parameter"}
		}
		if !s.has(account) {
			return nil, &rpcError{Code: codeParams, Message: "Specified account does not exist"}
		}
	}
	s.mu.Lock()
	unlinked := s.unlinked
	s.mu.Unlock()
	if unlinked && strings.HasPrefix(name, "send") {
		return nil, &rpcError{Code: codeIO, Message: "Failed to send message: [403] Authorization failed! (AuthorizationFailedException)"}
	}
	return m.run(s, r, p)
}

func (s *Server) has(account string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.accounts, account)
}

func (s *Server) listAccounts(_ *http.Request, _ Params) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []map[string]string{}
	for _, number := range s.accounts {
		out = append(out, map[string]string{"number": number})
	}
	return out, nil
}

// target is where a call goes: a group or a person.
type target struct {
	group  *Group
	person *Person
}

// targets resolves recipients and groups. The caller holds no lock.
func (s *Server) targets(p Params) ([]target, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []target
	for _, id := range p.Strings("groupId") {
		g := s.groups[id]
		if g == nil {
			if _, err := base64.StdEncoding.DecodeString(id); err != nil {
				return nil, userError("Invalid group id: Failed to decode groupId (must be base64) \"" + id + "\": " + err.Error())
			}
			return nil, userError("Group not found: " + id)
		}
		if g.left {
			return nil, userError("User is not a group member: " + g.ID)
		}
		out = append(out, target{group: g})
	}
	for _, id := range p.Strings("recipient") {
		if !strings.HasPrefix(id, "+") && len(id) != 36 {
			return nil, userError("Invalid phone number '" + id + "': The string supplied did not seem to be a phone number.")
		}
		person := s.people[id]
		if person == nil { // somebody who is not on Signal
			person = &Person{Number: id, stranger: true}
		}
		out = append(out, target{person: person})
	}
	if p.Bool("noteToSelf") {
		out = append(out, target{person: s.people[s.o.Account]})
	}
	if len(out) == 0 {
		return nil, userError("No recipients given")
	}
	return out, nil
}

func (t target) key() string {
	if t.group != nil {
		return t.group.ID
	}
	return t.person.id()
}

func (s *Server) sendTyping(_ *http.Request, p Params) (any, error) {
	to, err := s.targets(p)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range to {
		s.typing[t.key()] = !p.Bool("stop")
	}
	return s.results(to, 0), nil
}

// Typing reports whether the account types in a chat now: a group id, a number or a UUID.
func (s *Server) Typing(chat string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.typing[s.keyOf(chat)]
}

// keyOf returns the form in which chats are kept. The caller holds the lock.
func (s *Server) keyOf(chat string) string {
	if p := s.people[chat]; p != nil {
		return p.id()
	}
	return chat
}

func (s *Server) sendReaction(_ *http.Request, p Params) (any, error) {
	to, err := s.targets(p)
	if err != nil {
		return nil, err
	}
	author, stamp := p.String("targetAuthor"), p.Int("targetTimestamp")
	if author == "" || stamp == 0 || p.String("emoji") == "" {
		return nil, userError("the following arguments are required: emoji, targetAuthor, targetTimestamp")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	who := s.people[author]
	if who == nil {
		return nil, userError("Invalid target author '" + author + "'")
	}
	for _, t := range to {
		key := reactionKey(t.key(), who.id(), stamp)
		if p.Bool("remove") {
			delete(s.reactions, key)
		} else {
			s.reactions[key] = p.String("emoji")
		}
	}
	return s.results(to, s.now()), nil
}

func reactionKey(chat, author string, stamp int64) string {
	return fmt.Sprintf("%s %s %d", chat, author, stamp)
}

// Reaction returns the emoji that the account has put on a message of a chat.
func (s *Server) Reaction(chat, author string, timestamp int64) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.people[author]; p != nil {
		author = p.id()
	}
	return s.reactions[reactionKey(s.keyOf(chat), author, timestamp)]
}

// Receipt is one that the account has sent.
type Receipt struct {
	To         string
	Kind       string
	Timestamps []int64
}

func (s *Server) sendReceipt(_ *http.Request, p Params) (any, error) {
	to, err := s.targets(p)
	if err != nil {
		return nil, err
	}
	var stamps []int64
	for _, key := range []string{"targetTimestamp", "targetTimestamps"} {
		switch v := p[key].(type) {
		case float64:
			stamps = append(stamps, int64(v))
		case []any:
			for _, one := range v {
				if n, ok := one.(float64); ok {
					stamps = append(stamps, int64(n))
				}
			}
		}
	}
	kind := p.String("type")
	if kind == "" {
		kind = "read"
	}
	if len(stamps) == 0 || !slices.Contains([]string{"read", "viewed"}, kind) {
		return nil, userError("Unknown receipt type: " + kind)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.receipts = append(s.receipts, Receipt{To: to[0].key(), Kind: kind, Timestamps: stamps})
	return s.results(to, s.now()), nil
}

// Receipts returns what was sent.
func (s *Server) Receipts() []Receipt {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.receipts)
}

func (s *Server) getAttachment(_ *http.Request, p Params) (any, error) {
	id := p.String("id")
	if id == "" {
		id = "sticker/" + p.String("packId")
	}
	s.mu.Lock()
	f, ok := s.files[id]
	s.mu.Unlock()
	if !ok {
		return nil, &rpcError{Code: codeUnexpected, Message: "An error occurred reading attachment: " + id}
	}
	return map[string]string{"data": base64.StdEncoding.EncodeToString(f.body)}, nil
}

func (s *Server) listContacts(_ *http.Request, p Params) (any, error) {
	asked := p.Strings("recipient")
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []map[string]any{}
	for _, person := range s.order {
		if person.Hidden && !p.Bool("allRecipients") {
			continue
		}
		if len(asked) > 0 && !slices.Contains(asked, person.Number) && !slices.Contains(asked, person.UUID) {
			continue
		}
		out = append(out, map[string]any{
			"number": orNull(person.Number), "uuid": orNull(person.UUID), "username": nil, "name": person.Name, "givenName": person.Name,
			"familyName": nil, "nickName": nil, "nickGivenName": nil, "nickFamilyName": nil, "note": nil, "color": nil, "isArchived": false,
			"isBlocked": false, "isHidden": false, "messageExpirationTime": 0, "profileSharing": true, "unregistered": false,
			"profile": map[string]any{"lastUpdateTimestamp": 0, "givenName": person.Name, "familyName": nil, "about": nil, "aboutEmoji": nil,
				"hasAvatar": false, "mobileCoinAddress": nil},
		})
	}
	return out, nil
}

func (s *Server) listGroups(_ *http.Request, _ Params) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := []map[string]any{}
	ids := make([]string, 0, len(s.groups))
	for id := range s.groups {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		g := s.groups[id]
		members := []map[string]any{}
		for _, m := range g.Members {
			members = append(members, map[string]any{"number": orNull(m.Number), "uuid": orNull(m.UUID)})
		}
		out = append(out, map[string]any{"id": g.ID, "name": g.Name, "description": "", "isMember": !g.left, "isBlocked": false,
			"messageExpirationTime": 0, "members": members, "pendingMembers": []any{}, "requestingMembers": []any{}, "admins": []any{}, "banned": []any{}})
	}
	return out, nil
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}
