// Package directory knows the rooms and people that accounts can reach, by name, and the platforms' home channels. It is the
// one place that finds out which address a target means. What it knows is kept in the store, so that names resolve right
// after a start and while a platform is away. It sends nothing.
package directory

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

	"github.com/rs/zerolog"

	"herald/gateway/config"
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

// Accounts are those whose rooms are known.
type Accounts interface {
	// Names returns the accounts that run.
	Names() []platforms.Account
	// Adapter returns the adapter that has an account now.
	Adapter(platforms.Account) (platforms.Adapter, bool)
}

// Options is what a Directory is made from.
type Options struct {
	Store    sessions.Store
	Accounts Accounts
	// Config returns the configuration in force, which names home channels.
	Config func() *config.Config
	// Rules say how the platforms write ids.
	Rules platforms.Rulebook
	Log   zerolog.Logger
	Now   func() time.Time
}

// Directory knows rooms, people and home channels by name. It is safe for concurrent use.
type Directory struct {
	o Options

	building sync.Mutex // one rebuild at a time

	mu    sync.RWMutex
	rooms map[platforms.Account][]platforms.Room
	at    map[platforms.Account]time.Time // of the newest list
}

// Open reads what the store has of the directory.
func Open(ctx context.Context, o Options) (*Directory, error) {
	d := &Directory{o: o, rooms: map[platforms.Account][]platforms.Room{}, at: map[platforms.Account]time.Time{}}
	err := o.Store.View(ctx, func(v sessions.View) error {
		values, err := v.Values(sessions.SpaceDirectory)
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
func (d *Directory) of(a platforms.Account) []platforms.Room {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.rooms[a]
}

// Keep rebuilds the directory now and then until ctx ends.
func (d *Directory) Keep(ctx context.Context) {
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
func (d *Directory) rebuild(ctx context.Context) {
	d.building.Lock()
	defer d.building.Unlock()
	for _, account := range d.o.Accounts.Names() {
		adapter, ok := d.o.Accounts.Adapter(account)
		if !ok || ctx.Err() != nil {
			continue
		}
		listed := d.of(account)
		if lister, can := adapter.(platforms.Directory); can {
			call, cancel := context.WithTimeout(ctx, directoryWait)
			rooms, err := lister.Rooms(call)
			cancel()
			if err != nil {
				d.o.Log.Debug().Str("account", account.String()).Err(err).Msg("the rooms of an account can't be listed now; the names that are known stay")
			} else {
				listed = rooms
			}
		} else {
			listed = nil
		}
		if err := d.set(ctx, account, listed); err != nil && ctx.Err() == nil {
			d.o.Log.Warn().Str("account", account.String()).Err(err).Msg("the channel directory can't be kept")
		}
	}
}

// set merges the listed rooms with the chats of sessions and keeps the result where it has changed.
func (d *Directory) set(ctx context.Context, account platforms.Account, listed []platforms.Room) error {
	var talked []sessions.Session
	err := d.o.Store.View(ctx, func(v sessions.View) (err error) {
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
	now := d.o.Now()
	d.mu.Lock()
	d.rooms[account], d.at[account] = rooms, now
	d.mu.Unlock()
	if string(before) == string(data) {
		return nil
	}
	return d.o.Store.Update(ctx, sessions.EdgeState, func(tx sessions.Tx) error {
		return tx.SetValue(sessions.SpaceDirectory,
			account.String(), data, now)
	})
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
		key := RoomTarget(account, room, true)
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

// resolver finds targets among what runs and is known.
func (d *Directory) resolver(ctx context.Context) Resolver {
	return Resolver{
		Rules:    d.o.Rules,
		Accounts: d.o.Accounts.Names,
		Home: func(p platforms.Name) (Home, bool) {
			home, ok, err := d.home(ctx, p)
			if err != nil {
				d.o.Log.Error().Err(err).Msg("the home channels can't be read")
			}
			return home, ok
		},
		Rooms: d.of,
		Open: func(ctx context.Context, a platforms.Account, user platforms.UserID) (platforms.Address, error) {
			adapter, ok := d.o.Accounts.Adapter(a)
			opener, can := adapter.(platforms.Opener)
			if !ok || !can {
				return platforms.Address{}, fmt.Errorf("%s can't open a direct chat; write to the bot there first", a)
			}
			return opener.Open(ctx, user)
		},
	}
}

// Find returns the address that a target means. One that means no chat is an error.
func (d *Directory) Find(ctx context.Context, target string) (platforms.Address, error) {
	at, err := d.resolver(ctx).Resolve(ctx, target, platforms.Address{})
	if errors.Is(err, ErrLocal) {
		return at, fmt.Errorf("target %q means no chat: nothing was sent", target)
	}
	return at, err
}

// Home returns the address of a platform's home channel. ok is false when it has none; an error means that it has one that
// can't be found.
func (d *Directory) Home(ctx context.Context, name platforms.Name) (at platforms.Address, ok bool, err error) {
	if _, ok, err := d.home(ctx, name); err != nil || !ok {
		return platforms.Address{}, false, err
	}
	at, err = d.Find(ctx, string(name))
	return at, true, err
}

// Platforms are the names of those that run, each once.
func (d *Directory) Platforms() []platforms.Name {
	var out []platforms.Name
	for _, a := range d.o.Accounts.Names() {
		if !slices.Contains(out, a.Platform) {
			out = append(out, a.Platform)
		}
	}
	return out
}

// Rules are those of a platform.
func (d *Directory) Rules(name platforms.Name) platforms.Rules { return d.o.Rules.Of(name) }
