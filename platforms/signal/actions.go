package signal

import (
	"context"
	"strconv"
	"strings"
	"sync"
	"time"

	"herald/platforms"
	"herald/platforms/wire"
)

// target returns the parameters that say where a call goes: a group, or a person by UUID where it is known.
func (a *Adapter) target(at platforms.Address) (map[string]any, error) {
	if at.AccountOf() != a.s.account {
		return nil, platforms.Failure(platforms.BadRequest, "address %s is not of this account", Mask(at.String()))
	}
	if group, ok := strings.CutPrefix(string(at.Chat), groupPrefix); ok {
		if group == "" {
			return nil, platforms.Failure(platforms.BadRequest, "a group without an id")
		}
		return map[string]any{"groupId": group}, nil
	}
	chat := string(at.Chat)
	if !numberForm.MatchString(tidyNumber(chat)) && !isUUID(chat) {
		return nil, platforms.Failure(platforms.BadRequest, "chat %q is no number, UUID or group:<id>", at.Chat)
	}
	if a.isOwn(ids(chat, "", "")) {
		return map[string]any{"recipient": []string{a.s.Account}}, nil
	}
	return map[string]any{"recipient": []string{a.people.find(chat).stable()}}, nil
}

// Open returns the address of the direct chat with a person, by number or UUID. It makes no request.
func (a *Adapter) Open(_ context.Context, user platforms.UserID) (platforms.Address, error) {
	id := strings.TrimSpace(string(user))
	if !numberForm.MatchString(tidyNumber(id)) && !isUUID(id) {
		return platforms.Address{}, platforms.Failure(platforms.BadRequest, "user %q is no number and no UUID", user)
	}
	who := a.people.find(id)
	chat := who.chat
	if chat == "" {
		chat = platforms.ChatID(who.id())
	}
	return platforms.Address{Platform: Platform, Account: a.s.account.ID, Chat: chat}, nil
}

// Rooms lists the groups and the people that the daemon knows.
func (a *Adapter) Rooms(ctx context.Context) ([]platforms.Room, error) {
	if err := a.gate.Check(wire.Account); err != nil {
		return nil, err
	}
	list, err := a.listContacts(ctx)
	if err != nil {
		return nil, outcome(err)
	}
	var groups []struct {
		ID     string `json:"id"`
		Name   string `json:"name"`
		Member bool   `json:"isMember"`
	}
	if err := a.rpc.call(ctx, "listGroups", nil, &groups); err != nil {
		return nil, outcome(err)
	}
	var out []platforms.Room
	for _, g := range groups {
		if g.Member && g.ID != "" {
			out = append(out, platforms.Room{Type: platforms.Group, Name: g.Name,
				Address: platforms.Address{Platform: Platform, Account: a.s.account.ID, Chat: platforms.ChatID(groupPrefix + g.ID)}})
		}
	}
	for _, c := range list {
		id := c.UUID
		if c.Number != "" {
			id = c.Number
		}
		if id == "" || c.Blocked {
			continue
		}
		at, err := a.Open(ctx, platforms.UserID(id))
		if err != nil {
			continue
		}
		room := platforms.Room{Type: platforms.DM, Name: c.shown(), Address: at, User: platforms.UserID(id)}
		for _, alias := range []string{c.Number, c.UUID, c.Username} {
			if alias != "" {
				room.Aliases = append(room.Aliases, alias)
			}
		}
		out = append(out, room)
	}
	return out, nil
}

// parseID takes a message id apart. One without an author belongs, in a direct chat, to the person.
func (a *Adapter) parseID(at platforms.Address, id platforms.MessageID) (timestamp int64, author string, err error) {
	stamp, author, _ := strings.Cut(string(id), ":")
	timestamp, parseErr := strconv.ParseInt(stamp, 10, 64)
	if parseErr != nil || timestamp <= 0 {
		return 0, "", platforms.Failure(platforms.BadRequest, "message %q is no Signal message id: want timestamp:author", Mask(string(id)))
	}
	if author == "" && !strings.HasPrefix(string(at.Chat), groupPrefix) {
		author = a.people.find(string(at.Chat)).stable()
	}
	if !isUUID(author) && !numberForm.MatchString(author) {
		return 0, "", platforms.Failure(platforms.BadRequest, "message %q does not say who wrote it", Mask(string(id)))
	}
	return timestamp, author, nil
}

// React puts emoji on a message in place of our earlier one, or takes it off when emoji is "". It returns Unsupported
// while Options.Reactions is off.
func (a *Adapter) React(ctx context.Context, at platforms.Address, id platforms.MessageID, emoji string) error {
	if !a.s.Reactions {
		return platforms.Failure(platforms.Unsupported, "reactions are switched off (platforms.signal.reactions)")
	}
	params, err := a.target(at)
	if err != nil {
		return err
	}
	if params["targetTimestamp"], params["targetAuthor"], err = a.parseID(at, id); err != nil {
		return err
	}
	params["emoji"] = emoji
	if emoji == "" { // the daemon wants to know which one
		params["emoji"], params["remove"] = "👀", true
		if ours := a.emoji.find(string(at.Chat), string(id)); ours != "" {
			params["emoji"] = ours
		}
	}
	a.receipts(ctx, at)
	err = a.act(ctx, "sendReaction", params)
	if err == nil {
		a.emoji.keep(string(at.Chat), string(id), emoji)
	}
	return err
}

// act makes one call beside the messages. Inside a window that Signal asked to wait it returns RateLimited without one.
func (a *Adapter) act(ctx context.Context, method string, params map[string]any) error {
	if err := a.gate.Check(wire.Account); err != nil {
		return err
	}
	var answer sendAnswer
	if err := a.rpc.call(ctx, method, params, &answer); err != nil {
		return a.judge(outcome(err))
	}
	if len(answer.Results) > 0 {
		if failed := ofResults(answer.Results); failed != nil {
			return a.judge(failed)
		}
	}
	_ = a.judge(nil)
	return nil
}

// TypingEvery returns 8 s: clients show the sign for 15 s.
func (a *Adapter) TypingEvery() time.Duration { return 8 * time.Second }

// Typing shows "typing". After three failures in a row it does nothing for a while.
func (a *Adapter) Typing(ctx context.Context, at platforms.Address) error {
	params, err := a.target(at)
	if err != nil {
		return err
	}
	if err := a.gate.Check(wire.Account); err != nil {
		return err
	}
	if !a.typing.allowed() {
		return nil
	}
	a.receipts(ctx, at)
	a.typing.on(string(at.Chat))
	err = a.act(ctx, "sendTyping", params)
	if a.typing.result(err) {
		a.s.Log.Warn().Err(err).Msg("the typing sign can't be shown")
	}
	return err
}

// stopTyping takes the sign off before a message. That it can't be taken off stops no message.
func (a *Adapter) stopTyping(ctx context.Context, at platforms.Address, params map[string]any) {
	if !a.typing.off(string(at.Chat)) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, min(2*time.Second, a.s.CheckTimeout))
	defer cancel()
	stop := map[string]any{"stop": true}
	for k, v := range params {
		stop[k] = v
	}
	if err := a.act(ctx, "sendTyping", stop); err != nil {
		a.s.Log.Debug().Err(err).Msg("the typing sign can't be taken off")
	}
}

// receipts says that the messages of a chat were read, if that is wanted.
func (a *Adapter) receipts(ctx context.Context, at platforms.Address) {
	waiting := a.unread.take(string(at.Chat))
	if !a.s.ReadReceipts {
		return
	}
	for author, stamps := range waiting {
		params := map[string]any{"recipient": []string{author}, "targetTimestamps": stamps, "type": "read"}
		if err := a.act(ctx, "sendReceipt", params); err != nil {
			a.s.Log.Debug().Err(err).Msg("a read receipt can't be sent")
		}
	}
}

// typingShown is how long clients show the sign.
const typingShown = 15 * time.Second

// typing knows where the sign is on, and pauses it after failures.
type typing struct {
	first time.Duration
	chats *wire.Recent[string, time.Time] // since when it is on

	mu       sync.Mutex
	failures int
	pause    time.Duration
	until    time.Time
	told     bool
}

func newTyping(first time.Duration) *typing {
	return &typing{first: first, chats: wire.NewRecent[string, time.Time](1000)}
}

func (t *typing) allowed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !time.Now().Before(t.until)
}

func (t *typing) on(chat string) {
	t.chats.Put(chat, time.Now())
}

// off reports whether the sign may still be on, and forgets it.
func (t *typing) off(chat string) bool {
	at, ok := t.chats.Take(chat)
	return ok && time.Since(at) < typingShown
}

// result counts failures. tell says that this is the first one in a row.
func (t *typing) result(err error) (tell bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.failures, t.pause, t.told = 0, 0, false
		return false
	}
	tell = !t.told
	t.told = true
	if t.failures++; t.failures >= 3 {
		t.pause = min(max(t.pause*2, t.first), max(time.Minute, t.first))
		t.until = time.Now().Add(t.pause)
	}
	return tell
}
