package directory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"herald/platforms"
)

// Channel is one place or person for the command line.
type Channel struct {
	Target string   `json:"target"`
	Name   string   `json:"name,omitempty"`
	Names  []string `json:"aliases,omitempty"`
	Type   string   `json:"type"` // "dm", "group", "channel", "thread"
	In     string   `json:"in,omitempty"`
	Home   bool     `json:"home,omitempty"`
}

// Query selects channels.
type Query struct {
	// Platform limits the list to one platform or account; empty is all.
	Platform string `json:"platform,omitempty"`
	// Refresh asks the platforms before.
	Refresh bool `json:"refresh,omitempty"`
}

// Channels lists what is known, by name.
func (d *Directory) Channels(ctx context.Context, q Query) ([]Channel, error) {
	if q.Refresh {
		d.rebuild(ctx)
	}
	name, id, _ := strings.Cut(q.Platform, "/")
	name = strings.ToLower(name)
	lines, found := []Channel{}, false
	count := map[platforms.Name]int{}
	for _, a := range d.o.Accounts.Names() {
		count[a.Platform]++
	}
	for _, a := range d.o.Accounts.Names() {
		if name != "" && (string(a.Platform) != name || id != "" && string(a.ID) != id) {
			continue
		}
		found = true
		home, _, err := d.home(ctx, a.Platform)
		if err != nil {
			return nil, err
		}
		for _, room := range d.of(a) {
			kind := cmp.Or(room.Type, platforms.Channel)
			if room.User != "" {
				kind = platforms.DM
			}
			lines = append(lines, Channel{Target: RoomTarget(a, room, count[a.Platform] > 1), Name: room.Name, Names: room.Aliases,
				Type: string(kind),
				In:   room.Parent, Home: home.Chat != "" && home.Chat == room.Address.Chat && (home.Account == "" || home.Account == a.ID)})
		}
	}
	if !found {
		_, err := d.Find(ctx, q.Platform)
		return nil, cmp.Or(err, fmt.Errorf("no such platform runs here: %q", q.Platform))
	}
	slices.SortStableFunc(lines, func(a, b Channel) int {
		return cmp.Or(cmp.Compare(strings.ToLower(a.Name), strings.ToLower(b.Name)), cmp.Compare(a.Target, b.Target))
	})
	return lines, nil
}
