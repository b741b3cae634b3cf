package directory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"herald/platforms"
)

const maxCandidates = 10

// Home is a home channel. Account is empty where the configuration names none.
type Home struct {
	Account platforms.AccountID
	Chat    platforms.ChatID
	Thread  platforms.ThreadID
	Name    string
}

// Resolver finds the place that a target means. Its functions are called without a lock and may be nil, except
// Accounts.
type Resolver struct {
	// Accounts are those that run.
	Accounts func() []platforms.Account
	// Home returns a platform's home channel, ok false where there is none.
	Home func(platforms.Name) (Home, bool)
	// Rooms are the places and people that an account is known to reach.
	Rooms func(platforms.Account) []platforms.Room
	// Rules say how the platforms write ids.
	Rules platforms.Rulebook
	// Open makes the direct chat with a person.
	Open func(context.Context, platforms.Account, platforms.UserID) (platforms.Address, error)
}

// ErrLocal says that a target means no place: the message is only kept.
var ErrLocal = errors.New("the target is local: nothing is sent")

// Resolve returns the place that a target means. origin is where the thing was asked for, a zero address for nowhere:
// then the target "origin" is local. Errors are *platforms.TargetError, ErrLocal, and those of Open. A place that is not known by a
// name is taken for an id, and it is never replaced by the home channel.
func (r Resolver) Resolve(ctx context.Context, target string, origin platforms.Address) (platforms.Address, error) {
	t, err := platforms.ParseTarget(target)
	if err != nil {
		return platforms.Address{}, err
	}
	switch {
	case t.Word == platforms.TargetOrigin && !origin.IsZero():
		return origin, nil
	case t.Word != "":
		return platforms.Address{}, ErrLocal
	}
	accounts, err := r.accounts(target, t)
	if err != nil {
		return platforms.Address{}, err
	}
	q := query{Resolver: r, target: target, platform: t.Platform, accounts: accounts}
	if t.Place == "" {
		return q.home()
	}
	return q.place(ctx, t.Place)
}

// accounts returns those that a target may mean, at least one.
func (r Resolver) accounts(target string, t platforms.Target) ([]platforms.Account, error) {
	var mine []platforms.Account
	var names, running []string
	for _, a := range r.Accounts() {
		if !slices.Contains(running, string(a.Platform)) {
			running = append(running, string(a.Platform))
		}
		if a.Platform != t.Platform {
			continue
		}
		names = append(names, a.String())
		if t.Account == "" || a.ID == t.Account {
			mine = append(mine, a)
		}
	}
	switch {
	case len(mine) > 0:
		return mine, nil
	case len(names) > 0:
		return nil, &platforms.TargetError{Target: target, Reason: fmt.Sprintf("%s has no account %q; running", t.Platform, t.Account), Candidates: names}
	}
	slices.Sort(running)
	return nil, &platforms.TargetError{Target: target, Reason: fmt.Sprintf("no platform called %q runs here; running", t.Platform), Candidates: running}
}

// query is one target of one platform.
type query struct {
	Resolver
	target   string
	platform platforms.Name
	accounts []platforms.Account
}

func (q query) fail(reason string, candidates ...string) (platforms.Address, error) {
	slices.Sort(candidates)
	candidates = slices.Compact(candidates)
	if n := len(candidates) - maxCandidates; n > 0 {
		candidates = append(candidates[:maxCandidates:maxCandidates], fmt.Sprintf("and %d more", n))
	}
	return platforms.Address{}, &platforms.TargetError{Target: q.target, Reason: reason, Candidates: candidates}
}

// home is the home channel.
func (q query) home() (platforms.Address, error) {
	home, ok := q.homeChannel()
	if !ok {
		return q.fail(fmt.Sprintf("it names no chat, and %[1]s has no home channel: write %[1]s:<chat>, use /sethome in a chat, or set platforms.%[1]s.home_channel", q.platform))
	}
	if home.Account != "" {
		i := slices.IndexFunc(q.accounts, func(a platforms.Account) bool { return a.ID == home.Account })
		if i < 0 {
			return q.fail("the home channel belongs to account " + string(home.Account) + ", which it does not mean or which does not run")
		}
		return q.at(q.accounts[i], home.Chat, home.Thread), nil
	}
	return q.exact(home.Chat, home.Thread)
}

func (q query) homeChannel() (Home, bool) {
	if q.Home == nil {
		return Home{}, false
	}
	home, ok := q.Home(q.platform)
	return home, ok && home.Chat != ""
}

func (q query) at(a platforms.Account, chat platforms.ChatID, thread platforms.ThreadID) platforms.Address {
	return platforms.Address{Platform: a.Platform, Account: a.ID, Chat: chat, Thread: thread}
}

// place finds what stands behind the colon.
func (q query) place(ctx context.Context, place string) (platforms.Address, error) {
	if home, ok := q.homeChannel(); ok && home.Name != "" && strings.EqualFold(place, home.Name) {
		return q.home()
	}
	switch place[0] {
	case '#':
		return q.named(place[1:])
	case '@':
		return q.person(ctx, place[1:])
	}
	chat, thread := q.split(place)
	if chat == "" {
		return q.fail("names no chat before the second colon")
	}
	if thread == "" && !q.knows(chat) {
		if found := q.rooms(func(a platforms.Account, room platforms.Room) bool { return called(room, place) }); len(found) > 0 {
			return q.fail("no chat has this id; did you mean", q.list(found)...)
		}
	}
	return q.exact(chat, thread)
}

// found is a room of one account.
type found struct {
	account platforms.Account
	room    platforms.Room
}

func (q query) rooms(want func(platforms.Account, platforms.Room) bool) []found {
	if q.Rooms == nil {
		return nil
	}
	var out []found
	for _, a := range q.accounts {
		for _, room := range q.Rooms(a) {
			if want(a, room) {
				out = append(out, found{a, room})
			}
		}
	}
	return out
}

// knows reports whether a chat has this id, exactly.
func (q query) knows(chat platforms.ChatID) bool {
	return chat != "" && len(q.rooms(func(_ platforms.Account, room platforms.Room) bool { return room.Address.Chat == chat })) > 0
}

// exact is a chat by its id, in the account that has it.
func (q query) exact(chat platforms.ChatID, thread platforms.ThreadID) (platforms.Address, error) {
	if len(q.accounts) == 1 {
		return q.at(q.accounts[0], chat, thread), nil
	}
	have := map[platforms.Account]bool{}
	for _, f := range q.rooms(func(_ platforms.Account, room platforms.Room) bool { return room.Address.Chat == chat }) {
		have[f.account] = true
	}
	if len(have) == 1 {
		for a := range have {
			return q.at(a, chat, thread), nil
		}
	}
	var candidates []string
	for _, a := range q.accounts {
		if len(have) == 0 || have[a] {
			candidates = append(candidates, platforms.TargetOf(q.at(a, chat, thread), true))
		}
	}
	return q.fail("several accounts of this platform run; name one", candidates...)
}

// named is a room by its name, which may have a thread behind it.
func (q query) named(name string) (platforms.Address, error) {
	thread := ""
	list := q.byName(name)
	if i := strings.LastIndexByte(name, ':'); len(list) == 0 && i > 0 {
		list, thread = q.byName(name[:i]), name[i+1:]
		name = name[:i]
	}
	switch len(list) {
	case 0:
		return q.fail(fmt.Sprintf("no room is called #%s; herald channels %s lists the known ones", name, q.platform), q.near(name)...)
	case 1:
		at := list[0].room.Address
		if thread != "" {
			at.Thread = platforms.ThreadID(thread)
		}
		return at, nil
	}
	return q.fail(fmt.Sprintf("several rooms are called #%s; write one of", name), q.list(list)...)
}

// byName returns the rooms of a name: those that are written exactly so, else those in any case.
func (q query) byName(name string) []found {
	name = strings.TrimSpace(name)
	if name == "" {
		return nil
	}
	list := q.rooms(func(_ platforms.Account, room platforms.Room) bool {
		return room.User == "" && !room.Address.IsZero() && called(room, name)
	})
	return exactFirst(unique(list), name)
}

// person is somebody by their handle, name or id.
func (q query) person(ctx context.Context, name string) (platforms.Address, error) {
	name = strings.TrimSpace(name)
	list := exactFirst(unique(q.rooms(func(_ platforms.Account, room platforms.Room) bool {
		return room.User != "" && (string(room.User) == name || called(room, name))
	})), name)
	switch {
	case name == "":
		return q.fail("it names nobody behind the @")
	case len(list) == 0:
		return q.fail(fmt.Sprintf("nobody is known as @%s; herald channels %s lists the people that are", name, q.platform), q.near(name)...)
	case len(list) > 1:
		return q.fail(fmt.Sprintf("several people are called @%s; write one of", name), q.list(list)...)
	}
	f := list[0]
	if !f.room.Address.IsZero() {
		return f.room.Address, nil
	}
	if q.Open == nil {
		return q.fail("a direct chat can't be opened here")
	}
	return q.Open(ctx, f.account, f.room.User)
}

// near returns targets whose names hold the one that was looked for.
func (q query) near(name string) []string {
	name = strings.ToLower(strings.TrimSpace(name))
	if name == "" {
		return nil
	}
	return q.list(unique(q.rooms(func(_ platforms.Account, room platforms.Room) bool {
		return strings.Contains(strings.ToLower(room.Name), name)
	})))
}

// list writes rooms as targets with their names.
func (q query) list(rooms []found) []string {
	several := 0
	for _, a := range q.Accounts() {
		if a.Platform == q.platform {
			several++
		}
	}
	out := make([]string, len(rooms))
	for i, f := range rooms {
		out[i] = RoomTarget(f.account, f.room, several > 1) + " (" + label(f.room) + ")"
	}
	return out
}

// label is a room's name as people write it.
func label(room platforms.Room) string {
	sign := "#"
	if room.User != "" {
		sign = "@"
	}
	name := sign + cmp.Or(room.Name, string(room.Address.Chat))
	if where := cmp.Or(room.Parent, string(room.Scope)); where != "" {
		name += " in " + where
	}
	return name
}

// RoomTarget writes a room as a target that means it and nothing else. withAccount names the account.
func RoomTarget(a platforms.Account, room platforms.Room, withAccount bool) string {
	if room.Address.IsZero() {
		head := string(a.Platform)
		if withAccount {
			head = a.String()
		}
		return head + ":@" + string(room.User)
	}
	return platforms.TargetOf(room.Address, withAccount)
}

// called reports whether a room has a name, in any case and with or without its sign.
func called(room platforms.Room, name string) bool {
	name = strings.TrimLeft(name, "#@")
	return name != "" && (strings.EqualFold(strings.TrimLeft(room.Name, "#@"), name) ||
		slices.ContainsFunc(room.Aliases, func(a string) bool { return strings.EqualFold(strings.TrimLeft(a, "#@"), name) }))
}

// exactFirst keeps those that are written exactly so, where there are some.
func exactFirst(list []found, name string) []found {
	exact := slices.DeleteFunc(slices.Clone(list), func(f found) bool {
		return strings.TrimLeft(f.room.Name, "#@") != name && string(f.room.User) != name
	})
	if len(exact) > 0 {
		return exact
	}
	return list
}

// unique drops rooms that are in the list twice.
func unique(list []found) []found {
	seen := map[string]bool{}
	return slices.DeleteFunc(list, func(f found) bool {
		key := RoomTarget(f.account, f.room, true)
		defer func() { seen[key] = true }()
		return seen[key]
	})
}

// split tells the chat's id from the thread's. An id that is known wins; else the platform's own form decides, and
// else the first colon.
func (q query) split(place string) (platforms.ChatID, platforms.ThreadID) {
	if q.knows(platforms.ChatID(place)) {
		return platforms.ChatID(place), ""
	}
	for i := len(place) - 1; i > 0; i-- {
		if place[i] == ':' && q.knows(platforms.ChatID(place[:i])) {
			return platforms.ChatID(place[:i]), platforms.ThreadID(place[i+1:])
		}
	}
	start := 0
	for _, prefix := range q.Rules.Of(q.platform).IDPrefixes {
		if strings.HasPrefix(place, prefix) {
			start = len(prefix)
			break
		}
	}
	chat, thread, _ := strings.Cut(place[start:], ":")
	return platforms.ChatID(place[:start] + chat), platforms.ThreadID(thread)
}
