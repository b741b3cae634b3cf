package slacktest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// ManifestError is what apps.manifest.validate finds wrong.
type ManifestError struct {
	Message string `json:"message"`
	Pointer string `json:"pointer"`
	// Code says what an event or command lacks, such as "missing_scope".
	Code string `json:"code,omitempty"`
}

// manifest is an app manifest, as far as its rules are checked. A field that Slack doesn't know is an error,
// so that all of them stand here.
type manifest struct {
	Schema   string `json:"$schema"`
	Metadata struct {
		Major *int `json:"major_version"`
		Minor *int `json:"minor_version"`
	} `json:"_metadata"`
	Display struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		Long        string `json:"long_description"`
		Background  string `json:"background_color"`
	} `json:"display_information"`
	Features manifestFeatures `json:"features"`
	OAuth    struct {
		Redirects []string `json:"redirect_urls"`
		Scopes    struct {
			Bot          []string `json:"bot"`
			User         []string `json:"user"`
			BotOptional  []string `json:"bot_optional"`
			UserOptional []string `json:"user_optional"`
		} `json:"scopes"`
		Managed *bool `json:"token_management_enabled"`
		PKCE    *bool `json:"pkce_enabled"`
	} `json:"oauth_config"`
	Settings  manifestSettings           `json:"settings"`
	Functions map[string]json.RawMessage `json:"functions"`
	Workflows map[string]json.RawMessage `json:"workflows"`
	Domains   []string                   `json:"outgoing_domains"`
	Directory json.RawMessage            `json:"app_directory"`
	MCP       json.RawMessage            `json:"mcp_servers"`
}

type manifestFeatures struct {
	Home *struct {
		Home     bool `json:"home_tab_enabled"`
		Messages bool `json:"messages_tab_enabled"`
		ReadOnly bool `json:"messages_tab_read_only_enabled"`
	} `json:"app_home"`
	Bot *struct {
		Name   string `json:"display_name"`
		Online bool   `json:"always_online"`
	} `json:"bot_user"`
	Assistant *struct {
		Description string           `json:"assistant_description"`
		Prompts     []manifestPrompt `json:"suggested_prompts"`
	} `json:"assistant_view"`
	Agent *struct {
		Description string            `json:"agent_description"`
		Prompts     []manifestPrompt  `json:"suggested_prompts"`
		Actions     []json.RawMessage `json:"actions"`
	} `json:"agent_view"`
	Commands []struct {
		Command     string `json:"command"`
		Description string `json:"description"`
		Hint        string `json:"usage_hint"`
		URL         string `json:"url"`
		Escape      bool   `json:"should_escape"`
	} `json:"slash_commands"`
	Shortcuts []struct {
		Type        string `json:"type"`
		Name        string `json:"name"`
		Callback    string `json:"callback_id"`
		Description string `json:"description"`
	} `json:"shortcuts"`
	Unfurl    []string        `json:"unfurl_domains"`
	Functions json.RawMessage `json:"functions"`
	Steps     json.RawMessage `json:"workflow_steps"`
	Code      json.RawMessage `json:"code_channels"`
}

type manifestPrompt struct {
	Title   string `json:"title"`
	Message string `json:"message"`
}

type manifestSettings struct {
	IPs    []string `json:"allowed_ip_address_ranges"`
	Events *struct {
		URL      string            `json:"request_url"`
		Bot      []string          `json:"bot_events"`
		User     []string          `json:"user_events"`
		Metadata []json.RawMessage `json:"metadata_subscriptions"`
	} `json:"event_subscriptions"`
	Webhooks *struct {
		Enabled bool `json:"incoming_webhooks_enabled"`
	} `json:"incoming_webhooks"`
	Interactivity *struct {
		Enabled bool   `json:"is_enabled"`
		URL     string `json:"request_url"`
		Menu    string `json:"message_menu_options_url"`
	} `json:"interactivity"`
	Org      bool   `json:"org_deploy_enabled"`
	Socket   bool   `json:"socket_mode_enabled"`
	Rotation bool   `json:"token_rotation_enabled"`
	Hosted   bool   `json:"is_hosted"`
	MCP      bool   `json:"is_mcp_enabled"`
	Runtime  string `json:"function_runtime"`
	Links    *struct {
		URI string `json:"initiate_uri"`
	} `json:"siws_links"`
}

// manifestChecker collects what is wrong with a manifest.
type manifestChecker struct {
	errors []ManifestError
	scopes []string
}

// ValidateManifest checks an app manifest (JSON) by Slack's documented rules: lengths, counts, known fields,
// scopes and events, the scope that each event and feature needs, and what Socket Mode and the bot user need.
func ValidateManifest(raw []byte) []ManifestError {
	var m manifest
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	c := &manifestChecker{}
	if err := decoder.Decode(&m); err != nil {
		c.bad("", "%v", err)
		return c.errors
	}
	if v := m.Metadata.Major; v != nil && *v != 1 && *v != 2 {
		c.bad("/_metadata/major_version", "must be 1 or 2")
	}
	c.display(&m)
	c.oauth(&m)
	c.features(&m.Features)
	c.settings(&m)
	return c.errors
}

func (c *manifestChecker) bad(pointer, format string, args ...any) {
	c.errors = append(c.errors, ManifestError{Message: fmt.Sprintf(format, args...), Pointer: pointer})
}

func (c *manifestChecker) length(pointer, s string, least, most int) {
	switch n := utf8.RuneCountInString(s); {
	case n < least && s == "":
		c.bad(pointer, "Must be provided")
	case n < least:
		c.bad(pointer, "Must be at least %d characters", least)
	case n > most:
		c.bad(pointer, "Must be at most %d characters, is %d", most, n)
	}
}

func (c *manifestChecker) count(pointer string, n, most int) {
	if n > most {
		c.bad(pointer, "Must have at most %d items, has %d", most, n)
	}
}

// filled refuses a list that is there and empty.
func filled[T any](c *manifestChecker, pointer string, list []T) {
	if list != nil && len(list) == 0 {
		c.bad(pointer, "Must have at least 1 item")
	}
}

// need wants a scope for something.
func (c *manifestChecker) need(pointer, what string, scopes ...string) {
	if !slices.ContainsFunc(scopes, func(s string) bool { return slices.Contains(c.scopes, s) }) {
		c.errors = append(c.errors, ManifestError{Code: "missing_scope", Pointer: pointer, Message: what + " needs the scope " + strings.Join(scopes, " or ")})
	}
}

var (
	hexColor     = regexp.MustCompile(`^#([0-9a-fA-F]{3}|[0-9a-fA-F]{6})$`)
	commandForm  = regexp.MustCompile(`^/[^\sA-Z/]+$`)
	botNameForm  = regexp.MustCompile(`^[a-z0-9._\- ]+$`)
	httpsAddress = regexp.MustCompile(`^https://\S+$`)
)

func (c *manifestChecker) display(m *manifest) {
	d := m.Display
	c.length("/display_information/name", d.Name, 1, 35)
	c.length("/display_information/description", d.Description, 0, 140)
	if d.Long != "" {
		c.length("/display_information/long_description", d.Long, 175, 4000)
	}
	if d.Background != "" && !hexColor.MatchString(d.Background) {
		c.bad("/display_information/background_color", "Must be a hex color")
	}
}

func (c *manifestChecker) oauth(m *manifest) {
	scopes := m.OAuth.Scopes
	c.scopes = slices.Concat(scopes.Bot, scopes.BotOptional)
	c.count("/oauth_config/redirect_urls", len(m.OAuth.Redirects), 1000)
	c.count("/oauth_config/scopes/bot", len(scopes.Bot), 255)
	seen := map[string]bool{}
	for i, scope := range c.scopes {
		pointer := fmt.Sprintf("/oauth_config/scopes/bot/%d", i)
		switch {
		case !slices.Contains(botScopes, scope):
			c.bad(pointer, "%q is no bot scope", scope)
		case seen[scope]:
			c.bad(pointer, "%q stands twice", scope)
		}
		seen[scope] = true
	}
	if len(scopes.Bot) > 0 && m.Features.Bot == nil {
		c.bad("/features/bot_user", "Bot scopes need a bot user")
	}
}

func (c *manifestChecker) features(f *manifestFeatures) {
	if f.Bot != nil {
		c.length("/features/bot_user/display_name", f.Bot.Name, 1, 80)
		if !botNameForm.MatchString(strings.ToLower(f.Bot.Name)) {
			c.bad("/features/bot_user/display_name", "May only have letters, digits, '-', '_' and '.'")
		}
	}
	if f.Assistant != nil {
		c.length("/features/assistant_view/assistant_description", f.Assistant.Description, 1, 300)
		c.prompts("/features/assistant_view", f.Assistant.Prompts)
		c.need("/features/assistant_view", "assistant_view", "assistant:write")
	}
	if f.Agent != nil {
		c.length("/features/agent_view/agent_description", f.Agent.Description, 0, 300)
		c.prompts("/features/agent_view", f.Agent.Prompts)
		c.need("/features/agent_view", "agent_view", "assistant:write")
	}
	if f.Agent != nil && f.Assistant != nil {
		c.bad("/features/agent_view", "agent_view and assistant_view exclude each other")
	}
	c.count("/features/unfurl_domains", len(f.Unfurl), 5)
	filled(c, "/features/unfurl_domains", f.Unfurl)
	c.shortcuts(f)
	c.commands(f)
}

func (c *manifestChecker) prompts(pointer string, prompts []manifestPrompt) {
	c.count(pointer+"/suggested_prompts", len(prompts), maxPrompts)
	for i, p := range prompts {
		c.length(fmt.Sprintf("%s/suggested_prompts/%d/title", pointer, i), p.Title, 1, 75)
		c.length(fmt.Sprintf("%s/suggested_prompts/%d/message", pointer, i), p.Message, 1, 2000)
	}
}

func (c *manifestChecker) shortcuts(f *manifestFeatures) {
	c.count("/features/shortcuts", len(f.Shortcuts), 10)
	filled(c, "/features/shortcuts", f.Shortcuts)
	for i, one := range f.Shortcuts {
		pointer := fmt.Sprintf("/features/shortcuts/%d", i)
		c.length(pointer+"/name", one.Name, 1, 24)
		c.length(pointer+"/callback_id", one.Callback, 1, 255)
		c.length(pointer+"/description", one.Description, 1, 150)
		if one.Type != "message" && one.Type != "global" {
			c.bad(pointer+"/type", "Must be message or global")
		}
		c.need(pointer, "a shortcut", "commands")
	}
}

// slackCommands are those that Slack has itself: an app's command of that name is never reached.
var slackCommands = strings.Fields(`/active /apps /archive /away /call /collapse /dm /dnd /expand /feed /huddle /invite /join /kick /leave
	/me /msg /mute /open /prefs /remind /remove /rename /search /shortcuts /shrug /status /topic /who`)

func (c *manifestChecker) commands(f *manifestFeatures) {
	c.count("/features/slash_commands", len(f.Commands), 50)
	filled(c, "/features/slash_commands", f.Commands)
	if len(f.Commands) > 0 {
		c.need("/features/slash_commands", "slash_commands", "commands")
	}
	seen := map[string]bool{}
	for i, one := range f.Commands {
		pointer := fmt.Sprintf("/features/slash_commands/%d", i)
		c.length(pointer+"/command", one.Command, 2, 32)
		c.length(pointer+"/description", one.Description, 1, 2000)
		c.length(pointer+"/usage_hint", one.Hint, 0, 1000)
		switch {
		case !commandForm.MatchString(one.Command):
			c.bad(pointer+"/command", "%q must begin with / and have neither spaces nor capitals", one.Command)
		case slices.Contains(slackCommands, one.Command):
			c.bad(pointer+"/command", "%s is a command of Slack itself", one.Command)
		case seen[one.Command]:
			c.bad(pointer+"/command", "%s stands twice", one.Command)
		}
		if one.URL != "" && !httpsAddress.MatchString(one.URL) {
			c.bad(pointer+"/url", "Must be an https URL")
		}
		seen[one.Command] = true
	}
}

func (c *manifestChecker) settings(m *manifest) {
	s := m.Settings
	c.count("/settings/allowed_ip_address_ranges", len(s.IPs), 50)
	filled(c, "/settings/allowed_ip_address_ranges", s.IPs)
	if s.Interactivity != nil && s.Interactivity.Enabled && s.Interactivity.URL == "" && !s.Socket {
		c.bad("/settings/interactivity/request_url", "Must be provided without Socket Mode")
	}
	if !s.Socket {
		for i, one := range m.Features.Commands {
			if one.URL == "" {
				c.bad(fmt.Sprintf("/features/slash_commands/%d/url", i), "Must be provided without Socket Mode")
			}
		}
	}
	if s.Runtime != "" && s.Runtime != "remote" && s.Runtime != "slack" {
		c.bad("/settings/function_runtime", "Must be remote or slack")
	}
	if s.Events == nil {
		return
	}
	if s.Events.URL == "" && !s.Socket && len(s.Events.Bot)+len(s.Events.User) > 0 {
		c.bad("/settings/event_subscriptions/request_url", "Must be provided without Socket Mode")
	}
	c.count("/settings/event_subscriptions/bot_events", len(s.Events.Bot), 100)
	seen := map[string]bool{}
	for i, event := range s.Events.Bot {
		pointer := fmt.Sprintf("/settings/event_subscriptions/bot_events/%d", i)
		scopes, known := eventScopes[event]
		switch {
		case !known:
			c.bad(pointer, "%q is no bot event", event)
		case seen[event]:
			c.bad(pointer, "%q stands twice", event)
		case len(scopes) > 0:
			c.need(pointer, event, scopes...)
		}
		seen[event] = true
	}
}
