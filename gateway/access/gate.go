package access

import (
	"slices"
	"strings"
	"sync/atomic"

	"herald/platforms"
)

// Tier is how much someone who may talk may do by command.
type Tier string

// The tiers.
const (
	TierNone  Tier = ""      // may not talk
	TierUser  Tier = "user"  // the commands of UserCommands, and those that are always free
	TierAdmin Tier = "admin" // every command
)

// The rules, in the order in which they are asked. A gap is a rule for which no platform has
// a use.
const (
	RuleTrusted   = 1  // the platform authenticates people itself
	RuleChat      = 3  // the group is allowed as a whole
	RuleBot       = 4  // bots: let in, or kept out, by AllowBots
	RuleNoUser    = 5  // nobody to decide about
	RuleAllowAll  = 6  // the platform is open
	RuleRole      = 7  // a role in AllowedRoles
	RulePaired    = 8  // an approved pairing code
	RuleAllowlist = 9  // AllowedUsers, GroupAllowedUsers, the general AllowedUsers
	RuleAllowFrom = 10 // AllowFrom, GroupAllowFrom
	RuleAllowAny  = 11 // every platform is open
	RuleDeny      = 12 // nothing has let them in
)

// Decision is the gate's answer for one event.
type Decision struct {
	Allowed bool
	// Reason says why, for a log; it holds no id.
	Reason string
	// Rule is the number of the rule that decided.
	Rule int
	Tier Tier
	// Named is true for an admin whose id is in a list of admins, and for who comes through the profile's own
	// door. Where no list is set everybody is an admin, and nobody is named: what shows other people's
	// conversations asks for this.
	Named bool
	// Pairing is true for a stranger's direct message that is to be answered with a pairing code.
	Pairing bool

	commands []string
}

// Approvals knows who was approved by a pairing code. It does no I/O.
type Approvals interface {
	// Approved reports whether the user may talk on the platform.
	Approved(platform platforms.Name, user platforms.UserID) bool
	// Any reports whether anyone may.
	Any(platform platforms.Name) bool
}

// Gate decides. It is safe for concurrent use.
type Gate struct {
	state     atomic.Pointer[state]
	approvals Approvals
}

type state struct {
	policy    Policy
	platforms map[platforms.Name]*compiled
}

// New returns a gate with a policy. approvals may be nil: then there is no pairing, and no Decision asks for it.
func New(p Policy, approvals Approvals) *Gate {
	g := &Gate{approvals: approvals}
	g.Set(p)
	return g
}

// Set replaces the policy. Decisions that have begun keep the old one.
func (g *Gate) Set(p Policy) {
	s := &state{policy: p, platforms: make(map[platforms.Name]*compiled, len(p.Platforms))}
	for name, pp := range p.Platforms {
		s.platforms[name] = compile(name, p, pp)
	}
	g.state.Store(s)
}

// of returns the platform's rules; a platform that the policy does not name has the general ones alone.
func (s *state) of(name platforms.Name) *compiled {
	if c, ok := s.platforms[name]; ok {
		return c
	}
	return compile(name, s.policy, PlatformPolicy{})
}

// Decide says whether the sender of an event may talk, and how. trusted is platforms.Traits.Trusted of the adapter
// that the event came from. The kind of event makes no difference, except that only a message or command can ask for
// pairing.
func (g *Gate) Decide(e platforms.Event, trusted bool) Decision {
	s := g.state.Load()
	c := s.of(e.Address.Platform)
	d := g.rule(s, c, e, trusted)
	if d.Allowed {
		d.Tier, d.commands = c.tier(e)
		d.Named = trusted || c.namedAdmin(e)
		return d
	}
	body := e.Message != nil || e.Command != nil
	d.Pairing = g.approvals != nil && body && e.ChatType == platforms.DM && e.Sender.ID != "" && !e.Sender.IsBot &&
		c.strangerDM(s.policy) == "pair"
	return d
}

// rule asks the rules in order.
func (g *Gate) rule(s *state, c *compiled, e platforms.Event, trusted bool) Decision {
	u, group := e.Sender, isGroup(e.ChatType)
	if trusted {
		return allow(RuleTrusted, "the platform authenticates people itself")
	}
	if group && !c.onlyChats.empty() && !c.onlyChats.hasChat(e.Address.Chat, e.ParentChat) && !(c.GuestMode && e.Addressed) {
		return deny(RuleDeny, "the chat is none of allowed_chats")
	}
	if u.IsBot {
		return c.bot(e, group)
	}
	if group && c.chats.hasChat(e.Address.Chat, e.ParentChat) {
		return allow(RuleChat, "the chat is in group_allowed_chats")
	}
	switch {
	case u.ID == "":
		return deny(RuleNoUser, "the platform does not say who it was")
	case c.AllowAll:
		return allow(RuleAllowAll, "allow_all is set for the platform")
	case c.roles.hasRole(u):
		return allow(RuleRole, "has one of allowed_roles")
	case g.approvals != nil && g.paired(e.Address.Platform, u):
		return allow(RulePaired, "approved by a pairing code")
	case c.env.has(u):
		return allow(RuleAllowlist, "in allowed_users")
	case group && c.groupEnv.has(u):
		return allow(RuleAllowlist, "in group_allowed_users")
	case c.config.has(u):
		return allow(RuleAllowFrom, "in allow_from")
	case group && c.groupConfig.has(u):
		return allow(RuleAllowFrom, "in group_allow_from")
	case s.policy.AllowAllUsers:
		return allow(RuleAllowAny, "allow_all_users is set")
	case !c.anyList:
		return deny(RuleDeny, "there is no allowlist")
	}
	return deny(RuleDeny, "in no allowlist")
}

// bot decides about another bot. AllowBots can let it in, and so can its own id on a list; "*", an open
// platform and an allowed chat mean people and do not.
func (c *compiled) bot(e platforms.Event, group bool) Decision {
	u := e.Sender
	switch {
	case u.ID == "":
		return deny(RuleNoUser, "the platform does not say which bot it was")
	case c.AllowBots == "all":
		return allow(RuleBot, "allow_bots is all")
	case c.AllowBots == "mentions" && e.Addressed:
		return allow(RuleBot, "allow_bots is mentions, and the bot spoke to us")
	case c.env.named(u), group && c.groupEnv.named(u):
		return allow(RuleAllowlist, "the bot's id is in an allowlist")
	case c.config.named(u), group && c.groupConfig.named(u):
		return allow(RuleAllowFrom, "the bot's id is in allow_from")
	}
	return deny(RuleBot, "a bot that allow_bots does not let in")
}

func (g *Gate) paired(p platforms.Name, u platforms.User) bool {
	return g.approvals.Approved(p, u.ID) || (u.Alt != "" && g.approvals.Approved(p, u.Alt))
}

// tier returns the sender's tier in the event's scope, and the commands a user may use there.
func (c *compiled) tier(e platforms.Event) (Tier, []string) {
	admins, commands := c.admins, c.UserCommands
	if isGroup(e.ChatType) {
		admins, commands = c.groupAdmins, c.GroupUserCommands
	}
	known := e.Sender.ID != "" && !e.Sender.IsBot
	if admins.empty() || (known && admins.has(e.Sender)) || (e.Sender.IsBot && admins.named(e.Sender)) {
		return TierAdmin, nil
	}
	return TierUser, commands
}

// namedAdmin reports whether the sender's own id is in the scope's list of admins.
func (c *compiled) namedAdmin(e platforms.Event) bool {
	admins := c.admins
	if isGroup(e.ChatType) {
		admins = c.groupAdmins
	}
	return e.Sender.ID != "" && admins.named(e.Sender)
}

// always are the commands that everyone who may talk may use: they tell, and change nothing.
var always = [...]string{"help", "whoami", "status", "context", "start"}

// MayCommand reports whether the sender may use a command, given by its own name without the slash (not an alias).
func (d Decision) MayCommand(name string) bool {
	if !d.Allowed {
		return false
	}
	name = commandName(name)
	return d.Tier == TierAdmin || slices.Contains(always[:], name) ||
		slices.ContainsFunc(d.commands, func(c string) bool { return c == "*" || commandName(c) == name })
}

// Commands returns the commands that a user's tier adds to those that are always free, for /whoami; nil for an
// admin.
func (d Decision) Commands() []string { return slices.Clone(d.commands) }

// commandName is the form in which command names are compared.
func commandName(s string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(strings.TrimSpace(s), "/")), "_", "-")
}

// Warnings says what an operator probably did not mean, a line each: above all, platforms where nobody may talk.
// trusted platforms are left out of Policy.Platforms by the caller, or named here.
func (g *Gate) Warnings(trusted ...platforms.Name) []string {
	s := g.state.Load()
	names := make([]platforms.Name, 0, len(s.platforms))
	for n := range s.platforms {
		if !slices.Contains(trusted, n) {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	var out []string
	for _, n := range names {
		out = append(out, s.platforms[n].warnings(n, s.policy, g.approvals != nil && g.approvals.Any(n))...)
	}
	return out
}

func isGroup(t platforms.ChatType) bool {
	return t == platforms.Group || t == platforms.Channel || t == platforms.Thread
}

func allow(rule int, reason string) Decision {
	return Decision{Allowed: true, Rule: rule, Reason: reason}
}

func deny(rule int, reason string) Decision { return Decision{Rule: rule, Reason: reason} }
