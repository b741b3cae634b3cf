package slack

import (
	"context"
	"regexp"
	"strings"

	"herald/platforms"
)

// verdict says what becomes of a message.
type verdict struct {
	drop      string // a reason; empty to hand the message on
	addressed bool
	named     bool // the message itself speaks to the bot
}

// judge applies the rules of where the bot answers, in the order of their precedence. Who may talk is not decided
// here.
func (a *Adapter) judge(ctx context.Context, m wireMessage, r room, at platforms.Address) verdict {
	s := a.s
	named := a.names.mentions(m, a.self().user)
	switch {
	case s.ignored[m.Channel]:
		return verdict{drop: "ignored"}
	case !a.allows(m.Channel, r):
		return verdict{drop: "chat"}
	case a.isBot(m) && !s.admits(named):
		return verdict{drop: "bot"}
	case r.kind == platforms.DM:
		return verdict{addressed: true, named: true}
	}
	if !named && s.IgnoreOtherMentions && opensWithMention(m.Text) {
		return verdict{drop: "other_user"}
	}
	// A wake word and a "!command" speak to the bot as a mention does.
	text := plainText(m.Text)
	called := named || a.s.patterns.In(text) || a.isCommand(text)
	if called {
		return verdict{addressed: true, named: true}
	}
	if s.StrictMention {
		return verdict{drop: "unmentioned"}
	}
	if m.Thread != "" && m.Thread != m.TS {
		follows := m.ParentUser != "" && m.ParentUser == a.self().user || a.takesPart(ctx, at)
		switch {
		case follows && !s.ThreadRequireMention:
			return verdict{addressed: true}
		case s.ThreadRequireMention:
			return verdict{drop: "unmentioned"}
		}
	}
	if s.must[m.Channel] || s.mention && !s.free[m.Channel] {
		return verdict{drop: "unmentioned"}
	}
	return verdict{}
}

// admits reports whether a bot is heard whose message names us or not.
func (s *settings) admits(named bool) bool {
	switch s.AllowBots() {
	case "all":
		return true
	case "mentions":
		return named
	}
	return false
}

// allows reports whether the bot answers in a channel at all. Direct chats are exempt, groups are not.
func (a *Adapter) allows(channel string, r room) bool {
	return len(a.s.allowed) == 0 || r.kind == platforms.DM || a.s.allowed[channel]
}

// opensWithMention reports whether a text begins by addressing somebody.
func opensWithMention(text string) bool {
	text = strings.TrimSpace(text)
	return strings.HasPrefix(text, "<@") || strings.HasPrefix(text, "<!subteam")
}

var bang = regexp.MustCompile(`^\s*!([A-Za-z0-9_-]{1,40})(\s|$)`)

// isCommand reports whether text begins with "!" and the name of a command.
func (a *Adapter) isCommand(text string) bool {
	match := bang.FindStringSubmatch(text)
	return match != nil && a.knows(match[1])
}

// commandOf turns "!cmd args" into "/cmd args" when there is such a command: Slack delivers no "/" in threads.
func (a *Adapter) commandOf(text string) string {
	match := bang.FindStringSubmatchIndex(text)
	if match == nil || !a.knows(text[match[2]:match[3]]) {
		return text
	}
	return "/" + text[match[2]:]
}

func (a *Adapter) knows(name string) bool {
	known := a.known.Load()
	return known != nil && (*known)[foldName(name)]
}

func foldName(name string) string { return strings.ReplaceAll(strings.ToLower(name), "_", "-") }

// SetCommands notes which words are commands. Slack's own list comes from the app's manifest: see Manifest.
func (a *Adapter) SetCommands(_ context.Context, commands []platforms.CommandInfo) error {
	known := make(map[string]bool, len(commands))
	for _, c := range commands {
		known[foldName(c.Name)] = true
	}
	a.known.Store(&known)
	return nil
}

// unmention takes the bot's own mention, which body has left as "<@me>", out of a text, with the comma or colon that
// people put after a name.
func (a *Adapter) unmention(text string) string {
	me := a.self().user
	if me == "" || !strings.Contains(text, ownMark) {
		return strings.TrimSpace(text)
	}
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, ownMark)
		out.WriteString(before)
		if !found {
			break
		}
		if strings.TrimSpace(out.String()) == "" {
			after = strings.TrimLeft(after, " \t\u00a0,:")
		} else {
			after = strings.TrimLeft(after, " \t\u00a0")
		}
		text = after
	}
	return strings.TrimSpace(out.String())
}

// ownMark stands for the bot's own mention in a text that is being read. It can't be in a text from outside: the
// reader drops its characters.
const ownMark = "\x00@\x00"
