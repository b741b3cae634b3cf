package discordtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxCommands is how many commands of a type a guild, or the global list, may have.
const maxCommands = 100

// command is a registered application command. Fields that the fake does not read are kept in raw.
type command struct {
	ID          ID              `json:"id"`
	App         ID              `json:"application_id"`
	Guild       ID              `json:"guild_id,omitempty"`
	Version     ID              `json:"version"`
	Type        int             `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Options     []commandOption `json:"options,omitempty"`
	Permissions *string         `json:"default_member_permissions"`
	DM          *bool           `json:"dm_permission,omitempty"`
	NSFW        bool            `json:"nsfw"`
	Contexts    []int           `json:"contexts"`
	Integration []int           `json:"integration_types,omitempty"`
	NameLocal   json.RawMessage `json:"name_localizations"`
	DescLocal   json.RawMessage `json:"description_localizations"`
}

type commandOption struct {
	Type        int             `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Required    bool            `json:"required,omitempty"`
	Choices     []commandChoice `json:"choices,omitempty"`
	Options     []commandOption `json:"options,omitempty"`
	Complete    bool            `json:"autocomplete,omitempty"`
	Channels    []int           `json:"channel_types,omitempty"`
	Min         json.RawMessage `json:"min_value,omitempty"`
	Max         json.RawMessage `json:"max_value,omitempty"`
	MinLength   *int            `json:"min_length,omitempty"`
	MaxLength   *int            `json:"max_length,omitempty"`
	NameLocal   json.RawMessage `json:"name_localizations,omitempty"`
	DescLocal   json.RawMessage `json:"description_localizations,omitempty"`
}

type commandChoice struct {
	Name      string          `json:"name"`
	NameLocal json.RawMessage `json:"name_localizations,omitempty"`
	Value     any             `json:"value"`
}

// Option types.
const (
	optSubcommand = 1
	optGroup      = 2
	optUser       = 6
	optChannel    = 7
	optRole       = 8
	optMention    = 9
)

// commandRoutes are those about application commands.
func (d *Discord) commandRoutes() map[string]handler {
	const global, guild = "/applications/{application}/commands", "/applications/{application}/guilds/{guild}/commands"
	return map[string]handler{
		"GET " + global:                   d.getCommands,
		"PUT " + global:                   d.putCommands,
		"POST " + global:                  d.postCommand,
		"GET " + global + "/{command}":    d.getCommand,
		"PATCH " + global + "/{command}":  d.patchCommand,
		"DELETE " + global + "/{command}": d.deleteCommand,
		"POST " + guild:                   d.postCommand,
	}
}

// scope checks the application and guild of a route.
func (d *Discord) scope(c *call) (ID, error) {
	if c.id("application") != d.bot.ID {
		return "", refuse(403, 20012, "You are not authorized to perform this action on this application")
	}
	if id := c.id("guild"); id != "" {
		if _, err := d.mine(c); err != nil {
			return "", err
		}
		return id, nil
	}
	return "", nil
}

func (d *Discord) listed(guild ID) []*command {
	out := []*command{}
	for _, cmd := range d.commands {
		if cmd.Guild == guild {
			out = append(out, cmd)
		}
	}
	return out
}

func (d *Discord) getCommands(c *call) (int, any, error) {
	guild, err := d.scope(c)
	if err != nil {
		return 0, nil, err
	}
	return 200, d.listed(guild), nil
}

// commandOf finds the command of a route.
func (d *Discord) commandOf(c *call) (*command, error) {
	guild, err := d.scope(c)
	if err != nil {
		return nil, err
	}
	for _, cmd := range d.commands {
		if cmd.Guild == guild && cmd.ID == c.id("command") {
			return cmd, nil
		}
	}
	return nil, errUnknownCommand
}

func (d *Discord) getCommand(c *call) (int, any, error) {
	cmd, err := d.commandOf(c)
	return 200, cmd, err
}

// putCommands replaces the whole list. Commands that keep their name and type keep their id.
func (d *Discord) putCommands(c *call) (int, any, error) {
	guild, err := d.scope(c)
	if err != nil {
		return 0, nil, err
	}
	var list []*command
	if err := c.decode(&list); err != nil {
		return 0, nil, err
	}
	f := &form{}
	count, names := map[int]int{}, map[string]bool{}
	for i, cmd := range list {
		cmd.complete(d.bot.ID, guild)
		checkCommand(f, fmt.Sprintf("%d.", i), cmd)
		count[cmd.Type]++
		key := fmt.Sprintf("%d %s", cmd.Type, cmd.Name)
		if names[key] {
			f.add(fmt.Sprint(i), "APPLICATION_COMMANDS_DUPLICATE_NAME", "Application command names must be unique")
		}
		names[key] = true
	}
	if count[1] > maxCommands {
		f.add("", "BASE_TYPE_MAX_LENGTH", fmt.Sprintf("Must be %d or fewer in length.", maxCommands))
	}
	if err := f.err(); err != nil {
		return 0, nil, err
	}
	old := d.listed(guild)
	d.commands = slices.DeleteFunc(d.commands, func(cmd *command) bool { return cmd.Guild == guild })
	for _, cmd := range list {
		cmd.ID, cmd.Version = d.newID(), d.newID()
		for _, was := range old {
			if was.Name == cmd.Name && was.Type == cmd.Type {
				cmd.ID = was.ID
			}
		}
		d.commands = append(d.commands, cmd)
	}
	return 200, d.listed(guild), nil
}

func (c *command) complete(app, guild ID) {
	c.App, c.Guild = app, guild
	if c.Type == 0 {
		c.Type = 1
	}
	if guild != "" {
		c.DM = nil
	}
}

// postCommand makes a command, or replaces the one of that name.
func (d *Discord) postCommand(c *call) (int, any, error) {
	guild, err := d.scope(c)
	if err != nil {
		return 0, nil, err
	}
	cmd := &command{}
	if err := c.decode(cmd); err != nil {
		return 0, nil, err
	}
	cmd.complete(d.bot.ID, guild)
	f := &form{}
	checkCommand(f, "", cmd)
	if err := f.err(); err != nil {
		return 0, nil, err
	}
	cmd.ID, cmd.Version = d.newID(), d.newID()
	same := 0
	for i, was := range d.commands {
		if was.Guild != guild || was.Type != cmd.Type {
			continue
		}
		if was.Name == cmd.Name {
			cmd.ID = was.ID
			d.commands[i] = cmd
			return http.StatusOK, cmd, nil
		}
		same++
	}
	if same >= maxCommands {
		return 0, nil, refuse(400, 30032, fmt.Sprintf("Maximum number of application commands reached (%d)", maxCommands))
	}
	d.commands = append(d.commands, cmd)
	return http.StatusCreated, cmd, nil
}

func (d *Discord) patchCommand(c *call) (int, any, error) {
	cmd, err := d.commandOf(c)
	if err != nil {
		return 0, nil, err
	}
	next := *cmd
	if err := c.decode(&next); err != nil {
		return 0, nil, err
	}
	next.ID, next.Type, next.Version = cmd.ID, cmd.Type, d.newID()
	f := &form{}
	checkCommand(f, "", &next)
	if err := f.err(); err != nil {
		return 0, nil, err
	}
	*cmd = next
	return 200, cmd, nil
}

func (d *Discord) deleteCommand(c *call) (int, any, error) {
	cmd, err := d.commandOf(c)
	if err != nil {
		return 0, nil, err
	}
	d.commands = slices.DeleteFunc(d.commands, func(o *command) bool { return o == cmd })
	return http.StatusNoContent, nil, nil
}

var commandName = regexp.MustCompile(`^[-_'\p{L}\p{N}\p{Devanagari}\p{Thai}]{1,32}$`)

// checkCommand validates a command. at is empty or ends in a dot.
func checkCommand(f *form, at string, c *command) {
	if c.Type == 1 {
		if !commandName.MatchString(c.Name) || c.Name != strings.ToLower(c.Name) {
			f.add(at+"name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
		}
		checkText(f, at+"description", c.Description, 100)
	} else {
		checkText(f, at+"name", c.Name, 32)
		if c.Description != "" {
			f.add(at+"description", "APPLICATION_COMMAND_CONTEXT_MENU_DESCRIPTION_NOT_ALLOWED", "Context menu commands cannot have description")
		}
	}
	size := utf8.RuneCountInString(c.Name + c.Description)
	size += checkOptions(f, at, c.Options)
	if size > 8000 {
		f.add(strings.TrimSuffix(at, "."), "APPLICATION_COMMAND_TOO_LARGE", "Command exceeds maximum size (8000)")
	}
}

func checkText(f *form, at, s string, most int) {
	if n := utf8.RuneCountInString(s); n == 0 || n > most {
		f.add(at, "BASE_TYPE_BAD_LENGTH", fmt.Sprintf("Must be between 1 and %d in length.", most))
	}
}

func checkOptions(f *form, at string, options []commandOption) (size int) {
	if len(options) > 25 {
		f.add(at+"options", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
	}
	optional, names := false, map[string]bool{}
	for i, o := range options {
		here := fmt.Sprintf("%soptions.%d", at, i)
		if o.Type < 1 || o.Type > 11 {
			f.add(here+".type", "BASE_TYPE_CHOICES", "Value must be one of {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}.")
		}
		if !commandName.MatchString(o.Name) || o.Name != strings.ToLower(o.Name) {
			f.add(here+".name", "APPLICATION_COMMAND_INVALID_NAME", "Command name is invalid")
		}
		checkText(f, here+".description", o.Description, 100)
		if names[o.Name] {
			f.add(here, "APPLICATION_COMMAND_OPTIONS_NAME_DUPLICATED", "Option name must be unique")
		}
		names[o.Name] = true
		if o.Required && optional {
			f.add(here, "APPLICATION_COMMAND_OPTIONS_REQUIRED_INVALID", "Required options must be placed before non-required options")
		}
		optional = optional || !o.Required
		if len(o.Choices) > 25 {
			f.add(here+".choices", "BASE_TYPE_MAX_LENGTH", "Must be 25 or fewer in length.")
		}
		for j, choice := range o.Choices {
			checkText(f, fmt.Sprintf("%s.choices.%d.name", here, j), choice.Name, 100)
			size += utf8.RuneCountInString(choice.Name)
		}
		size += utf8.RuneCountInString(o.Name+o.Description) + checkOptions(f, here+".", o.Options)
	}
	return size
}

// Commands returns the bot's commands, those of a guild, or the global ones when it is empty.
func (d *Discord) Commands(guild ID) []Registered {
	d.mu.Lock()
	defer d.mu.Unlock()
	var out []Registered
	for _, c := range d.listed(guild) {
		raw, _ := json.Marshal(c)
		out = append(out, Registered{ID: c.ID, Guild: guild, Name: c.Name, Description: c.Description, Type: c.Type, Raw: raw})
	}
	return out
}
