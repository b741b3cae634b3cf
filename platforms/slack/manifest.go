package slack

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"herald/platforms"
)

// scope is a permission of the bot token and what needs it.
type scope struct {
	name    string
	methods []string
	events  []string
}

// scopes are what the adapter needs, no more and no less: the manifest asks for them, and a test compares them with
// the methods that are called.
var scopes = []scope{
	{"app_mentions:read", nil, []string{"app_mention"}},
	{"assistant:write", []string{"assistant.threads.setStatus", "assistant.threads.setTitle", "assistant.threads.setSuggestedPrompts"}, nil},
	{"channels:history", []string{"conversations.history", "conversations.replies"}, []string{"message.channels"}},
	{"channels:read", []string{"conversations.info", "users.conversations"}, nil},
	{"chat:write", []string{"chat.postMessage", "chat.postEphemeral", "chat.update", "chat.delete", "chat.startStream", "chat.appendStream", "chat.stopStream"}, nil},
	{"commands", nil, nil},
	{"files:read", []string{"files.info", "download"}, nil},
	{"files:write", []string{"files.getUploadURLExternal", "upload", "files.completeUploadExternal"}, nil},
	{"groups:history", []string{"conversations.history", "conversations.replies"}, []string{"message.groups"}},
	{"groups:read", []string{"conversations.info", "users.conversations"}, nil},
	{"im:history", []string{"conversations.history", "conversations.replies"}, []string{"message.im"}},
	{"im:read", []string{"conversations.info"}, nil},
	{"im:write", []string{"conversations.open"}, nil},
	{"mpim:history", []string{"conversations.history", "conversations.replies"}, []string{"message.mpim"}},
	{"mpim:read", []string{"conversations.info", "users.conversations"}, nil},
	{"reactions:read", []string{"reactions.get"}, []string{"reaction_added", "reaction_removed"}},
	{"reactions:write", []string{"reactions.add", "reactions.remove"}, nil},
	{"users:read", []string{"users.info", "users.list"}, nil},
}

// scopeless are the methods and events that need no scope.
var (
	scopelessMethods = []string{"auth.test", "response_url"}
	scopelessEvents  = []string{"app_uninstalled", "tokens_revoked"}
	agentEvents      = []string{"app_context_changed", "app_home_opened"}
)

// BotScopes returns the scopes of the bot token that the adapter uses.
func BotScopes() []string {
	out := make([]string, len(scopes))
	for i, s := range scopes {
		out[i] = s.name
	}
	return out
}

// BotEvents returns the events that the adapter subscribes to.
func BotEvents() []string {
	var out []string
	for _, s := range scopes {
		out = append(out, s.events...)
	}
	return append(out, scopelessEvents...)
}

// Limits of an app manifest, https://docs.slack.dev/reference/app-manifest.
const (
	maxAppName      = 35
	minLong         = 175
	maxLong         = 4000
	maxCommands     = 50
	maxSlash        = 32
	maxCommandText  = 2000
	maxCommandUsage = 1000
)

// reserved are Slack's own commands: it refuses or never delivers an app's command of that name.
var reserved = set(strings.Fields(`active apps archive away call collapse dm dnd expand feed feedback huddle invite join keys kick leave me
	msg mute open part prefs pro remind remove rename search shortcuts shrug star status topic unarchive who`))

// ManifestOptions says what Manifest writes.
type ManifestOptions struct {
	// Name is the app's name, at most 35 characters. Empty is "Herald".
	Name string
	// LongDescription is 175 to 4,000 characters, or empty.
	LongDescription string
	// AgentView shows the app as an agent, with threads of its own beside the channels.
	AgentView bool
	// Commands become slash commands.
	Commands []platforms.CommandInfo
}

// SlashCommand is a command in a manifest.
type SlashCommand struct {
	Command     string `json:"command"`
	Description string `json:"description"`
	Usage       string `json:"usage_hint,omitempty"`
	Escape      bool   `json:"should_escape"`
}

// SlashCommands returns the commands of the manifest: /herald, and as many of the others as fit into Slack's 50. Those
// that are left out, because there is no room or because Slack has a command of that name itself, work as
// "/herald name".
func SlashCommands(commands []platforms.CommandInfo) []SlashCommand {
	out := []SlashCommand{{Command: "/" + commandName, Description: "Ask, or run any command: " + "/" + commandName + " help", Usage: "[command or question]", Escape: true}}
	for _, c := range commands {
		name := foldName(c.Name)
		if reserved[name] || name == commandName || len(name) >= maxSlash || len(out) == maxCommands {
			continue
		}
		out = append(out, SlashCommand{Command: "/" + name, Description: cut(firstOf(c.Description, c.Name), maxCommandText),
			Usage: cut(c.Args, maxCommandUsage), Escape: true})
	}
	return out
}

// Manifest returns an app manifest as JSON that Slack takes: the commands, and exactly the scopes and events that the
// adapter uses. The error says what is wrong with the options.
func Manifest(o ManifestOptions) ([]byte, error) {
	if o.Name == "" {
		o.Name = "Herald"
	}
	if n := utf8.RuneCountInString(o.Name); n > maxAppName {
		return nil, fmt.Errorf("the name has %d characters: want at most %d", n, maxAppName)
	}
	if n := utf8.RuneCountInString(o.LongDescription); o.LongDescription != "" && (n < minLong || n > maxLong) {
		return nil, fmt.Errorf("the long description has %d characters: want %d to %d", n, minLong, maxLong)
	}
	m := newManifest(o)
	if m.Features.Bot.Name == "" {
		return nil, errors.New("the name has no letter or digit that a bot's name may have")
	}
	out, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(out, '\n'), nil
}

type manifest struct {
	Display struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Long        string `json:"long_description,omitempty"`
		Background  string `json:"background_color"`
	} `json:"display_information"`
	Features struct {
		Home struct {
			Home     bool `json:"home_tab_enabled"`
			Messages bool `json:"messages_tab_enabled"`
			ReadOnly bool `json:"messages_tab_read_only_enabled"`
		} `json:"app_home"`
		Bot struct {
			Name   string `json:"display_name"`
			Online bool   `json:"always_online"`
		} `json:"bot_user"`
		Agent    *agentView     `json:"agent_view,omitempty"`
		Commands []SlashCommand `json:"slash_commands"`
	} `json:"features"`
	OAuth struct {
		Scopes struct {
			Bot []string `json:"bot"`
		} `json:"scopes"`
	} `json:"oauth_config"`
	Settings struct {
		Events struct {
			Bot []string `json:"bot_events"`
		} `json:"event_subscriptions"`
		Interactivity struct {
			Enabled bool `json:"is_enabled"`
		} `json:"interactivity"`
		Org      bool `json:"org_deploy_enabled"`
		Socket   bool `json:"socket_mode_enabled"`
		Rotation bool `json:"token_rotation_enabled"`
	} `json:"settings"`
}

type agentView struct {
	Description string `json:"agent_description"`
}

func newManifest(o ManifestOptions) *manifest {
	m := &manifest{}
	m.Display.Name, m.Display.Description, m.Display.Long = o.Name, "An AI agent in your chats", o.LongDescription
	m.Display.Background = "#2b3a55"
	m.Features.Home.Messages = true
	m.Features.Bot.Name, m.Features.Bot.Online = botName(o.Name), true
	m.Features.Commands = SlashCommands(o.Commands)
	m.OAuth.Scopes.Bot = BotScopes()
	m.Settings.Events.Bot = BotEvents()
	if o.AgentView {
		m.Features.Agent = &agentView{"Ask, hand over work, and follow it in a thread"}
		m.Settings.Events.Bot = append(append(m.Settings.Events.Bot, "assistant_thread_started"), agentEvents...)
	}
	m.Settings.Interactivity.Enabled, m.Settings.Socket = true, true
	return m
}

// botName makes the bot's name of the app's: letters, digits, "-", "_" and ".".
func botName(name string) string {
	var b strings.Builder
	for _, r := range strings.ToLower(name) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			b.WriteRune(r)
		case r == ' ':
			b.WriteByte('-')
		}
	}
	return strings.Trim(b.String(), "-")
}
