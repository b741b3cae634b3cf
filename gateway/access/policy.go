package access

import (
	"fmt"
	"slices"
	"strings"

	"herald/platforms"
)

// Policy is who may talk, as the operator has set it. The zero value lets nobody in.
type Policy struct {
	// AllowedUsers are ids that may talk on every platform; "*" means everyone. (HERALD_ALLOWED_USERS)
	AllowedUsers []string
	// AllowAllUsers lets everyone in, on every platform. (HERALD_ALLOW_ALL_USERS)
	AllowAllUsers bool
	// UnauthorizedDM is "pair", "ignore" or "" for the default.
	UnauthorizedDM string
	// Platforms has one entry per platform that is on. A platform without one has the zero policy.
	Platforms map[platforms.Name]PlatformPolicy
	// Rules say how the platforms' ids are compared.
	Rules platforms.Rulebook
}

// PlatformPolicy is the part of one platform. Its fields have the names and meaning of the keys below
// platforms.<name> in the configuration.
type PlatformPolicy struct {
	AllowedUsers      []string // in any chat
	GroupAllowedUsers []string // in groups
	GroupAllowedChats []string // everyone in these groups, anonymous posts included
	AllowFrom         []string // in any chat
	GroupAllowFrom    []string // in groups
	// AllowedRoles lets people in by a role that the room's owner has given them, as the adapter has verified it
	// (platforms.User.Roles). "*" means nothing here.
	AllowedRoles []string
	// AllowedChats, when it has entries, are the only groups that are answered at all. GuestMode makes an
	// exception for events that speak to the bot.
	AllowedChats []string
	GuestMode    bool
	AllowAll     bool
	// AllowUsernames makes entries such as "@anna" count. A name can change hands, so this is weaker than ids.
	AllowUsernames bool
	// AllowBots is "none" (or empty), "mentions" or "all".
	AllowBots string
	// AdminFrom and UserCommands are the tiers of direct chats, the Group ones those of all other chats. Without admins
	// there are no tiers in that scope: everyone who may talk is an admin.
	AdminFrom         []string
	UserCommands      []string
	GroupAdminFrom    []string
	GroupUserCommands []string
	// UnauthorizedDM is "pair", "ignore" or "" for the general value.
	UnauthorizedDM string
}

// list is a set of ids of one platform, ready to be asked.
type list struct {
	form  func(id string) string // in which ids are compared
	all   bool
	ids   map[string]bool
	names map[string]bool // lower case, without "@"
}

func newList(form func(string) string, usernames bool, entries ...[]string) list {
	l := list{form: form, ids: map[string]bool{}, names: map[string]bool{}}
	for _, e := range slices.Concat(entries...) {
		switch e = form(e); {
		case e == "":
		case e == "*":
			l.all = true
		case e[0] == '@':
			if usernames && len(e) > 1 {
				l.names[strings.ToLower(e[1:])] = true
			}
		default:
			l.ids[e] = true
		}
	}
	return l
}

// named reports whether the user is on the list by id or name, "*" aside.
func (l list) named(u platforms.User) bool {
	for _, id := range [...]platforms.UserID{u.ID, u.Alt} {
		if id != "" && l.ids[l.form(string(id))] {
			return true
		}
	}
	return u.Username != "" && l.names[strings.ToLower(u.Username)]
}

// has reports whether the user is on the list, "*" included.
func (l list) has(u platforms.User) bool { return l.all || l.named(u) }

// groups are the chats that entries of group_allowed_users name, on platforms whose users write groups there.
func groups(p platforms.Name, rules platforms.Rules, entries []string) []string {
	if rules.GroupOf == nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if chat, ok := rules.GroupOf(normal(p, rules, e)); ok {
			out = append(out, string(chat))
		}
	}
	return out
}

// hasRole reports whether one of the user's roles is on the list.
func (l list) hasRole(u platforms.User) bool {
	return slices.ContainsFunc(u.Roles, func(role string) bool { return role != "" && l.ids[strings.TrimSpace(role)] })
}

// hasChat reports whether one of the chats is on the list, "*" included.
func (l list) hasChat(chats ...platforms.ChatID) bool {
	for _, c := range chats {
		if c != "" && (l.all || l.ids[l.form(string(c))]) {
			return true
		}
	}
	return false
}

func (l list) empty() bool { return !l.all && len(l.ids) == 0 && len(l.names) == 0 }

// normal brings an id into the form in which it is compared: no white space around it, no "platform:" before it, and what
// the platform's rules make of it.
func normal(p platforms.Name, rules platforms.Rules, id string) string {
	id = strings.TrimSpace(id)
	if rest, ok := strings.CutPrefix(id, string(p)+":"); ok && p != "" {
		id = strings.TrimSpace(rest)
	}
	if rules.NormalID != nil {
		id = rules.NormalID(id)
	}
	return id
}

// compiled is a PlatformPolicy with its lists ready.
type compiled struct {
	PlatformPolicy
	env, config           list // rules 9 and 10, any chat
	groupEnv, groupConfig list // rules 9 and 10, groups
	chats, onlyChats      list
	roles                 list
	admins, groupAdmins   list
	anyList               bool
}

func compile(name platforms.Name, all Policy, p PlatformPolicy) *compiled {
	rules := all.Rules.Of(name)
	form := func(id string) string { return normal(name, rules, id) }
	c := &compiled{PlatformPolicy: p,
		env:         newList(form, p.AllowUsernames, p.AllowedUsers, all.AllowedUsers),
		config:      newList(form, p.AllowUsernames, p.AllowFrom),
		groupEnv:    newList(form, p.AllowUsernames, p.GroupAllowedUsers),
		groupConfig: newList(form, p.AllowUsernames, p.GroupAllowFrom),
		chats:       newList(form, false, p.GroupAllowedChats, groups(name, rules, p.GroupAllowedUsers)),
		onlyChats:   newList(form, false, p.AllowedChats),
		roles:       newList(form, false, p.AllowedRoles),
		admins:      newList(form, p.AllowUsernames, p.AdminFrom),
		groupAdmins: newList(form, p.AllowUsernames, p.GroupAdminFrom),
	}
	for _, l := range [...]list{c.env, c.config, c.groupEnv, c.groupConfig, c.chats, {ids: c.roles.ids}} {
		c.anyList = c.anyList || !l.empty()
	}
	return c
}

// warnings says what an operator probably did not mean.
func (c *compiled) warnings(name platforms.Name, all Policy, paired bool) []string {
	var out []string
	upper := strings.ToUpper(string(name))
	if !c.anyList && !c.AllowAll && !all.AllowAllUsers && !paired {
		text := fmt.Sprintf("%s: nobody may talk to Herald yet: set %s_ALLOWED_USERS (or platforms.%s.allow_from) to the ids of the people who may, or to * for everyone", name, upper, name)
		if c.strangerDM(all) == "pair" {
			text += "; or let them write to the bot and approve the code it answers with: herald pairing approve " + string(name) + " CODE"
		}
		out = append(out, text)
	}
	if !c.AllowUsernames {
		for _, l := range [...][]string{c.AllowedUsers, c.AllowFrom, c.GroupAllowedUsers, c.GroupAllowFrom, c.AdminFrom, c.GroupAdminFrom} {
			for _, e := range l {
				if e = strings.TrimSpace(e); strings.HasPrefix(e, "@") {
					out = append(out, fmt.Sprintf("%s: %q in an allowlist is not used: names can change hands; use the numeric id, or set platforms.%s.allow_usernames", name, e, name))
				}
			}
		}
	}
	return out
}

// strangerDM resolves what a stranger's direct message gets: the platform's value, the general one, "ignore" where
// any allowlist exists, else "pair".
func (c *compiled) strangerDM(all Policy) string {
	switch {
	case c.UnauthorizedDM != "":
		return c.UnauthorizedDM
	case all.UnauthorizedDM != "":
		return all.UnauthorizedDM
	case c.anyList:
		return "ignore"
	}
	return "pair"
}
