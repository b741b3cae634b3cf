package discord

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"

	"github.com/bwmarrin/discordgo"

	"herald/platforms"
)

const (
	// commandsLimit is the most commands of a bot, descriptionLimit the most code points of what one does,
	// choicesLimit the most proposals for an argument.
	commandsLimit, descriptionLimit, choicesLimit = 100, 100, 25
	// argName is the one option that a command has.
	argName = "args"
)

// command is an application command as we write it, and as far as ours are compared with Discord's.
type command struct {
	ID          string                           `json:"id,omitempty"`
	Type        discordgo.ApplicationCommandType `json:"type"`
	Name        string                           `json:"name"`
	Description string                           `json:"description"`
	Options     []commandOption                  `json:"options,omitempty"`
}

type commandOption struct {
	Type         discordgo.ApplicationCommandOptionType `json:"type"`
	Name         string                                 `json:"name"`
	Description  string                                 `json:"description"`
	Required     bool                                   `json:"required,omitempty"`
	Autocomplete bool                                   `json:"autocomplete,omitempty"`
}

func (c command) same(d command) bool {
	c.ID, d.ID = "", ""
	one, _ := json.Marshal(c)
	two, _ := json.Marshal(d)
	return string(one) == string(two)
}

var commandName = regexp.MustCompile(`^[a-z0-9_-]{1,32}$`)

// SetCommands brings the application commands at Discord in line with ours, as Options.CommandSync says. More than 100
// are cut with a warning. Commands that Discord has and we don't are deleted.
func (a *Adapter) SetCommands(ctx context.Context, commands []platforms.CommandInfo) error {
	want, choices, err := commandsOf(commands)
	if err != nil {
		return err
	}
	a.choicesMu.Lock()
	a.choices = choices
	a.choicesMu.Unlock()
	if a.s.NoCommands || a.s.CommandSync == SyncOff {
		return nil
	}
	if len(want) > commandsLimit {
		a.s.Log.Warn().Int("shown", commandsLimit).Int("all", len(want)).Msg("Discord takes at most 100 commands; the others are left out")
		want = want[:commandsLimit]
	}
	app, err := a.app(ctx)
	if err != nil {
		return err
	}
	c := call{route: "/applications/{app}/commands", major: "commands", path: "/applications/" + app + "/commands"}
	if a.s.CommandSync == SyncBulk {
		c.method, c.body = http.MethodPut, want
		return a.do(ctx, c, nil)
	}
	var have []command
	c.method = http.MethodGet
	if err := a.do(ctx, c, &have); err != nil {
		return err
	}
	return a.syncCommands(ctx, c, have, want)
}

// syncCommands changes only what differs.
func (a *Adapter) syncCommands(ctx context.Context, c call, have, want []command) error {
	theirs := map[string]command{}
	changed := 0
	for _, h := range have {
		if h.Type <= discordgo.ChatApplicationCommand {
			h.Type = discordgo.ChatApplicationCommand
			theirs[h.Name] = h
		}
	}
	write := func(method, path string, body any) error {
		changed++
		one := call{method: method, route: c.route, major: c.major, path: path}
		if body != nil {
			one.body = body
		}
		return a.do(ctx, one, nil)
	}
	for _, w := range want {
		h, known := theirs[w.Name]
		delete(theirs, w.Name)
		var err error
		switch {
		case !known:
			err = write(http.MethodPost, c.path, w)
		case h.same(w):
		default:
			err = write(http.MethodPatch, c.path+"/"+h.ID, w)
			if isKind(err, platforms.BadRequest) && a.s.CommandRecreate {
				if err = write(http.MethodDelete, c.path+"/"+h.ID, nil); err == nil {
					err = write(http.MethodPost, c.path, w)
				}
			}
		}
		if isKind(err, platforms.BadRequest) {
			a.s.Log.Warn().Err(err).Str("command", w.Name).Msg("Discord does not take a command; the others go on (command_sync_allow_recreate may help)")
			continue
		}
		if err != nil {
			return err
		}
	}
	for _, h := range theirs {
		if err := write(http.MethodDelete, c.path+"/"+h.ID, nil); err != nil && statusOf(err) != http.StatusNotFound {
			return err
		}
	}
	a.s.Log.Info().Int("commands", len(want)).Int("changed", changed).Msg("the application commands are in line")
	return nil
}

// commandsOf writes our commands as Discord's, with the proposals for their arguments.
func commandsOf(commands []platforms.CommandInfo) ([]command, map[string][]string, error) {
	out := make([]command, 0, len(commands))
	choices := map[string][]string{}
	for _, info := range commands {
		if !commandName.MatchString(info.Name) {
			return nil, nil, platforms.Failure(platforms.BadRequest, "command %q: want 1 to 32 of a-z 0-9 _ -", info.Name)
		}
		c := command{Type: discordgo.ChatApplicationCommand, Name: info.Name, Description: cut(info.Description, descriptionLimit)}
		if c.Description == "" {
			c.Description = info.Name
		}
		if info.Args != "" {
			o := commandOption{Type: discordgo.ApplicationCommandOptionString, Name: argName, Description: cut(info.Args, descriptionLimit)}
			if list := choicesOf(info.Args); len(list) > 0 {
				o.Autocomplete, choices[info.Name] = true, list
			}
			c.Options = []commandOption{o}
		}
		out = append(out, c)
	}
	return out, choices, nil
}

// placeholders are words of hints that stand for something else.
var placeholders = map[string]bool{"name": true, "number": true, "topic": true, "text": true, "message": true, "note": true, "page": true,
	"command": true, "title": true, "id": true, "n": true, "words": true}

var choiceWord = regexp.MustCompile(`^[a-z0-9_-]+$`)

// choicesOf returns the words that a hint such as "[on | off]" lets people choose from.
func choicesOf(hint string) []string {
	if !strings.Contains(hint, "|") {
		return nil
	}
	var out []string
	for part := range strings.SplitSeq(strings.Trim(hint, "[] "), "|") {
		if part = strings.TrimSpace(part); choiceWord.MatchString(part) && !placeholders[part] {
			out = append(out, part)
		}
	}
	return out[:min(len(out), choicesLimit)]
}

// complete proposes arguments to somebody who types a command.
func (a *Adapter) complete(ctx context.Context, i *interaction) {
	typed := ""
	for _, o := range i.Data.Options {
		if o.Focused {
			typed = strings.ToLower(strings.TrimSpace(o.text()))
		}
	}
	a.choicesMu.Lock()
	all := a.choices[i.Data.Name]
	a.choicesMu.Unlock()
	type choice struct {
		Name  string `json:"name"`
		Value string `json:"value"`
	}
	list := []choice{}
	for _, c := range all {
		if strings.HasPrefix(c, typed) {
			list = append(list, choice{c, c})
		}
	}
	ctx, cancel := context.WithTimeout(ctx, ackTime)
	defer cancel()
	body := map[string]any{"type": discordgo.InteractionApplicationCommandAutocompleteResult, "data": map[string]any{"choices": list}}
	if err := a.callback(ctx, i.ID, i.Token, body); err != nil {
		a.s.Log.Debug().Err(err).Str("command", i.Data.Name).Msg("proposals for a command came too late")
	}
}
