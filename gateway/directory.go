package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"herald/gateway/delivery"
	"herald/platforms"
	"herald/sessions"
)

// The bounds of the channel directory.
const (
	directoryFirst = 5 * time.Second // after the start
	directoryEvery = 5 * time.Minute
	directoryWait  = 2 * time.Minute // for the list of one account
	directoryMost  = 5000            // entries of one account
	directoryChats = 1000            // sessions that are looked through
)

const spaceDirectory = "directory"

// directory knows the rooms and people that accounts can reach, by name. What it knows is kept in the store, so that names
// resolve right after a start and while a platform is away.
type directory struct {
	g *Gateway

	building sync.Mutex // one rebuild at a time

	mu    sync.RWMutex
	rooms map[platforms.Account][]platforms.Room
	at    map[platforms.Account]time.Time // of the newest list
}

func newDirectory(ctx context.Context, g *Gateway) (*directory, error) {
	d := &directory{g: g, rooms: map[platforms.Account][]platforms.Room{}, at: map[platforms.Account]time.Time{}}
	err := g.store.View(ctx, func(v sessions.View) error {
		values, err := v.Values(spaceDirectory)
		for _, val := range values {
			var rooms []platforms.Room
			name, id, _ := strings.Cut(val.Name, "/")
			if json.Unmarshal(val.Data, &rooms) == nil {
				account := platforms.Account{Platform: platforms.Name(name), ID: platforms.AccountID(id)}
				d.rooms[account], d.at[account] = rooms, val.At
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read the channel directory: %w", err)
	}
	return d, nil
}

// of returns what is known of an account. It is not to be changed.
func (d *directory) of(a platforms.Account) []platforms.Room {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.rooms[a]
}

// keep rebuilds the directory now and then until ctx ends.
func (d *directory) keep(ctx context.Context) {
	defer d.g.wg.Done()
	timer := time.NewTimer(directoryFirst)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
			d.rebuild(ctx)
			timer.Reset(directoryEvery)
		}
	}
}

// rebuild asks every account that can list its rooms and adds the chats of its sessions. What can't be asked keeps its
// list.
func (d *directory) rebuild(ctx context.Context) {
	d.building.Lock()
	defer d.building.Unlock()
	for _, account := range d.g.accounts.Names() {
		adapter, ok := d.g.accounts.Adapter(account)
		if !ok || ctx.Err() != nil {
			continue
		}
		listed := d.of(account)
		if lister, can := adapter.(platforms.Directory); can {
			call, cancel := context.WithTimeout(ctx, directoryWait)
			rooms, err := lister.Rooms(call)
			cancel()
			if err != nil {
				d.g.log.Debug().Str("account", account.String()).Err(err).Msg("the rooms of an account can't be listed now; the names that are known stay")
			} else {
				listed = rooms
			}
		} else {
			listed = nil
		}
		if err := d.set(ctx, account, listed); err != nil && ctx.Err() == nil {
			d.g.log.Warn().Str("account", account.String()).Err(err).Msg("the channel directory can't be kept")
		}
	}
}

// set merges the listed rooms with the chats of sessions and keeps the result where it has changed.
func (d *directory) set(ctx context.Context, account platforms.Account, listed []platforms.Room) error {
	var talked []sessions.Session
	err := d.g.store.View(ctx, func(v sessions.View) (err error) {
		talked, err = v.Sessions(sessions.SessionQuery{Platform: account.Platform, Account: account.ID, Limit: directoryChats})
		return err
	})
	if err != nil {
		return err
	}
	rooms := mergeRooms(account, listed, talked)
	data, err := json.Marshal(rooms)
	if err != nil {
		return err
	}
	before, err := json.Marshal(d.of(account))
	if err != nil {
		return err
	}
	now := d.g.now()
	d.mu.Lock()
	d.rooms[account], d.at[account] = rooms, now
	d.mu.Unlock()
	if string(before) == string(data) {
		return nil
	}
	return d.g.store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error { return tx.SetValue(spaceDirectory, account.String(), data, now) })
}

// mergeRooms returns the listed rooms and people, then the chats of sessions that are none of them, without
// duplicates, rooms before people, at most directoryMost.
func mergeRooms(account platforms.Account, listed []platforms.Room, talked []sessions.Session) []platforms.Room {
	seen := map[string]bool{}
	var rooms, people []platforms.Room
	add := func(room platforms.Room) {
		if !room.Address.IsZero() {
			room.Address.Platform, room.Address.Account = account.Platform, account.ID
		}
		key := delivery.RoomTarget(account, room, true)
		if seen[key] || room.Address.Chat == "" && room.User == "" {
			return
		}
		seen[key] = true
		if room.User != "" {
			people = append(people, room)
			return
		}
		rooms = append(rooms, room)
	}
	for _, room := range listed {
		add(room)
	}
	for _, s := range talked {
		add(roomOf(s.Origin))
	}
	all := append(rooms, people...)
	return all[:min(len(all), directoryMost)]
}

// roomOf is the chat of a session, without its thread.
func roomOf(o sessions.Origin) platforms.Room {
	at := o.Address
	at.Thread = ""
	room := platforms.Room{Address: at, Type: o.ChatType, Name: o.ChatName, Scope: o.Scope}
	if o.ChatType == platforms.DM {
		room.User, room.Name = o.User, cmp.Or(o.UserName, o.ChatName)
	}
	if room.User == "" && o.ChatType == platforms.DM {
		room.User = platforms.UserID(at.Chat)
	}
	return room
}

// resolver finds delivery targets among what runs and is known.
func (g *Gateway) resolver(ctx context.Context) delivery.Resolver {
	return delivery.Resolver{
		Rules:    g.rules,
		Accounts: g.accounts.Names,
		Home: func(p platforms.Name) (delivery.Home, bool) {
			home, ok, err := g.home(ctx, p)
			if err != nil {
				g.log.Error().Err(err).Msg("the home channels can't be read")
			}
			return home, ok
		},
		Rooms: g.directory.of,
		Open: func(ctx context.Context, a platforms.Account, user platforms.UserID) (platforms.Address, error) {
			adapter, ok := g.accounts.Adapter(a)
			opener, can := adapter.(platforms.Opener)
			if !ok || !can {
				return platforms.Address{}, fmt.Errorf("%s can't open a direct chat; write to the bot there first", a)
			}
			return opener.Open(ctx, user)
		},
	}
}

// target resolves a delivery target of the command line.
func (g *Gateway) target(ctx context.Context, s string) (platforms.Address, error) {
	at, err := g.resolver(ctx).Resolve(ctx, s, platforms.Address{})
	if errors.Is(err, delivery.ErrLocal) {
		return at, fmt.Errorf("target %q means no chat: nothing was sent", s)
	}
	return at, err
}

// ChannelLine is one place or person for the command line.
type ChannelLine struct {
	Target string   `json:"target"`
	Name   string   `json:"name,omitempty"`
	Names  []string `json:"aliases,omitempty"`
	Type   string   `json:"type"` // "dm", "group", "channel", "thread"
	In     string   `json:"in,omitempty"`
	Home   bool     `json:"home,omitempty"`
}

// ChannelsArgs selects them.
type ChannelsArgs struct {
	// Platform limits the list to one platform or account; empty is all.
	Platform string `json:"platform,omitempty"`
	// Refresh asks the platforms before.
	Refresh bool `json:"refresh,omitempty"`
}

func (g *Gateway) channelsVerb(ctx context.Context, raw json.RawMessage) (any, error) {
	var args ChannelsArgs
	if err := decodeArgs(raw, &args); err != nil {
		return nil, err
	}
	if args.Refresh {
		g.directory.rebuild(ctx)
	}
	name, id, _ := strings.Cut(args.Platform, "/")
	name = strings.ToLower(name)
	lines, found := []ChannelLine{}, false
	count := map[platforms.Name]int{}
	for _, a := range g.accounts.Names() {
		count[a.Platform]++
	}
	for _, a := range g.accounts.Names() {
		if name != "" && (string(a.Platform) != name || id != "" && string(a.ID) != id) {
			continue
		}
		found = true
		home, _, err := g.home(ctx, a.Platform)
		if err != nil {
			return nil, err
		}
		for _, room := range g.directory.of(a) {
			kind := cmp.Or(room.Type, platforms.Channel)
			if room.User != "" {
				kind = platforms.DM
			}
			lines = append(lines, ChannelLine{Target: delivery.RoomTarget(a, room, count[a.Platform] > 1), Name: room.Name, Names: room.Aliases, Type: string(kind),
				In: room.Parent, Home: home.Chat != "" && home.Chat == room.Address.Chat && (home.Account == "" || home.Account == a.ID)})
		}
	}
	if !found {
		_, err := g.target(ctx, args.Platform)
		return nil, cmp.Or(err, fmt.Errorf("no such platform runs here: %q", args.Platform))
	}
	slices.SortStableFunc(lines, func(a, b ChannelLine) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), cmp.Compare(a.Target, b.Target))
	})
	return lines, nil
}
