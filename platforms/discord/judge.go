package discord

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/bwmarrin/discordgo"
)

// verdict says what becomes of a message.
type verdict struct {
	drop      string // a reason; empty to hand the message on
	addressed bool
	opens     bool // it is answered in a thread that is opened from it
	earlier   bool // it is the first in its thread that speaks to the bot
	text      string
}

// wanted reports whether there is anything to answer.
func (v verdict) wanted(m *message) bool {
	return v.text != "" || len(m.Files) > 0 || len(m.Snapshots) > 0 || describe(m) != ""
}

// answersIn applies the lists of channels: ignored ones win over all others.
func (a *Adapter) answersIn(p place) bool {
	return !a.s.ignored.holds(p) && (len(a.s.allowed) == 0 || a.s.allowed.holds(p))
}

// judge applies the rules of where the bot answers, in their order of precedence. Who may talk is not
// decided here.
func (a *Adapter) judge(ctx context.Context, m *message, p place) (verdict, error) {
	me := a.me()
	v := verdict{text: a.textOf(m, me)}
	switch m.Type {
	case discordgo.MessageTypeDefault, discordgo.MessageTypeReply:
	default:
		v.drop = dropService
		return v, nil
	}
	if m.Author == nil {
		v.drop = dropService
		return v, nil
	}
	if p.dm() {
		v.addressed = true
		return v, nil
	}
	if !a.answersIn(p) {
		v.drop = dropChannel
		return v, nil
	}
	named, err := a.named(ctx, m, p, me)
	if err != nil {
		return v, err
	}
	isBot := m.Author.Bot || m.WebhookID != ""
	if isBot && a.s.botsMention && !named {
		v.drop = dropBot
		return v, nil
	}
	replied := m.Referenced != nil && m.Referenced.Author != nil && m.Referenced.Author.ID == me.id && me.id != "" &&
		m.Type == discordgo.MessageTypeReply
	v.addressed = named || replied || a.s.patterns.In(v.text)
	known, err := a.known(ctx, p, me)
	if err != nil {
		return v, err
	}
	free := !a.s.requires || a.s.free.holds(p) || known && !a.s.ThreadRequireMention
	switch {
	case v.addressed:
	case !free:
		v.drop = dropUnmentioned
		return v, nil
	case a.s.ignoresOthers && mentionsOthers(m, me):
		v.drop = dropOthers
		return v, nil
	}
	if known && !a.s.ThreadRequireMention {
		v.addressed = true // who writes in our thread speaks to us
	}
	v.earlier = p.thread() && !known && m.ID != p.channel
	v.opens = a.opens(m, p, named || a.s.patterns.In(v.text))
	return v, nil
}

// opens tells whether a message is answered in a thread of its own.
func (a *Adapter) opens(m *message, p place, called bool) bool {
	if !a.s.autoThread || p.thread() || p.kind != discordgo.ChannelTypeGuildText && p.kind != discordgo.ChannelTypeGuildNews {
		return false
	}
	if a.s.noThread.holds(p) {
		return false
	}
	if a.s.free.holds(p) {
		return a.s.FreeAutoThread
	}
	return called // a reply to our answer in the channel stays in the channel
}

// named reports whether the text names the bot, or the role that stands for it.
func (a *Adapter) named(ctx context.Context, m *message, p place, me identity) (bool, error) {
	if me.id != "" && (strings.Contains(m.Content, "<@"+me.id+">") || strings.Contains(m.Content, "<@!"+me.id+">")) {
		return true, nil
	}
	if len(m.MentionsOf) == 0 {
		return false, nil
	}
	s, err := a.serverFor(ctx, p.guild)
	if err != nil {
		if statusOf(err) != 0 && statusOf(err) < 500 && statusOf(err) != 429 {
			return false, nil
		}
		return false, &lookupError{err}
	}
	return slices.ContainsFunc(m.MentionsOf, func(role string) bool { return s.botRole[role] }), nil
}

// known reports whether a place is a thread that the bot takes part in.
func (a *Adapter) known(ctx context.Context, p place, me identity) (bool, error) {
	if !p.thread() {
		return false, nil
	}
	if p.owner != "" && p.owner == me.id {
		return true, nil
	}
	return a.threads.joined(ctx, p.channel)
}

// mentionsOthers reports whether the text names people or roles, and not the bot.
func mentionsOthers(m *message, me identity) bool {
	if len(m.MentionsOf) > 0 {
		return true
	}
	for _, u := range m.Mentions {
		if u != nil && u.ID != me.id && (strings.Contains(m.Content, "<@"+u.ID+">") || strings.Contains(m.Content, "<@!"+u.ID+">")) {
			return true
		}
	}
	return false
}

// notation is what Discord writes for people, roles, channels, commands, emoji and times.
var notation = regexp.MustCompile(`<(@!?|@&|#|/[^:<>]{1,100}:|a?:[A-Za-z0-9_~]{1,64}:)([0-9]{1,20})>`)

// textOf returns the text of a message as people see it, with the bot's own mention taken out. A message that
// is only the mention keeps it: it still is a call.
func (a *Adapter) textOf(m *message, me identity) string {
	text := m.Content
	if text == "" {
		text = embedText(m)
	}
	text = strings.ReplaceAll(text, "\x00", "") // it is our mark of a mention below
	names := map[string]string{}
	for _, u := range m.Mentions {
		if u != nil {
			names[u.ID] = nameOf(u, nil)
		}
	}
	roles := a.ownRoles(m)
	own := "\x00"
	out := notation.ReplaceAllStringFunc(text, func(s string) string {
		part := notation.FindStringSubmatch(s)
		kind, id := part[1], part[2]
		switch {
		case strings.HasPrefix(kind, "@&"):
			if roles[id] {
				return own
			}
		case strings.HasPrefix(kind, "@"):
			if id == me.id {
				return own
			}
			if names[id] != "" {
				return "@" + names[id]
			}
		case kind == "#":
			if p, ok := a.rooms.get(id); ok && p.name != "" {
				return "#" + p.name
			}
		case strings.HasPrefix(kind, "/"):
			return strings.TrimSuffix(kind, ":")
		default: // a custom emoji
			return ":" + strings.Trim(strings.TrimPrefix(kind, "a"), ":") + ":"
		}
		return s
	})
	if !strings.Contains(out, own) {
		return strings.TrimSpace(out)
	}
	for _, gap := range []string{own + ", ", own + ": ", own + " ", own} {
		out = strings.ReplaceAll(out, gap, "")
	}
	if out = strings.TrimSpace(out); out == "" && len(m.Files) == 0 && len(m.Snapshots) == 0 {
		return "@" + me.name
	}
	return out
}

// ownRoles returns the roles that stand for the bot, as far as they are known.
func (a *Adapter) ownRoles(m *message) map[string]bool {
	if len(m.MentionsOf) == 0 {
		return nil
	}
	s, _ := a.rooms.server(m.GuildID)
	return s.botRole
}

func embedText(m *message) string {
	var parts []string
	for _, e := range m.Embeds {
		for _, s := range []string{e.Title, e.Description} {
			if s != "" {
				parts = append(parts, s)
			}
		}
	}
	return strings.Join(parts, "\n")
}
