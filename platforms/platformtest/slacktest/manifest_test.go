package slacktest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// goodManifest is a manifest that Slack takes.
const goodManifest = `{
  "_metadata": {"major_version": 2, "minor_version": 1},
  "display_information": {"name": "Herald", "description": "An agent", "background_color": "#123abc"},
  "features": {
    "app_home": {"home_tab_enabled": false, "messages_tab_enabled": true, "messages_tab_read_only_enabled": false},
    "bot_user": {"display_name": "herald", "always_online": true},
    "assistant_view": {"assistant_description": "Answers"},
    "slash_commands": [{"command": "/ask", "description": "Ask", "usage_hint": "[text]", "should_escape": false}]
  },
  "oauth_config": {"scopes": {"bot": ["app_mentions:read", "assistant:write", "chat:write", "commands", "im:history"]}},
  "settings": {
    "event_subscriptions": {"bot_events": ["app_mention", "message.im", "assistant_thread_started"]},
    "interactivity": {"is_enabled": true}, "org_deploy_enabled": false, "socket_mode_enabled": true, "token_rotation_enabled": false
  }
}`

func TestValidateManifest(t *testing.T) {
	require.Empty(t, ValidateManifest([]byte(goodManifest)))
	var commands []string
	for i := range 51 {
		commands = append(commands, fmt.Sprintf(`{"command":"/c%d","description":"d"}`, i))
	}
	for _, c := range []struct{ name, was, is, pointer, code string }{
		{"no JSON", "{", "[", "", ""},
		{"unknown field", `"always_online"`, `"always_on"`, "", ""},
		{"long name", `"Herald"`, `"` + strings.Repeat("x", 36) + `"`, "/display_information/name", ""},
		{"long description", `"An agent"`, `"` + strings.Repeat("x", 141) + `"`, "/display_information/description", ""},
		{"short long description", `"description": "An agent"`, `"long_description": "short"`, "/display_information/long_description", ""},
		{"color", "#123abc", "blue", "/display_information/background_color", ""},
		{"unknown scope", `"chat:write"`, `"chat:scream"`, "/oauth_config/scopes/bot/2", ""},
		{"event without scope", `, "im:history"`, ``, "/settings/event_subscriptions/bot_events/1", "missing_scope"},
		{"unknown event", `"message.im"`, `"message.mpi"`, "/settings/event_subscriptions/bot_events/1", ""},
		{"commands without scope", `"commands", `, ``, "/features/slash_commands", "missing_scope"},
		{"assistant without scope", `"assistant:write", `, ``, "/features/assistant_view", "missing_scope"},
		{"command without slash", `"/ask"`, `"ask"`, "/features/slash_commands/0/command", ""},
		{"command with capitals", `"/ask"`, `"/Ask"`, "/features/slash_commands/0/command", ""},
		{"Slack's own command", `"/ask"`, `"/status"`, "/features/slash_commands/0/command", ""},
		{"command without description", `"Ask"`, `""`, "/features/slash_commands/0/description", ""},
		{"too many commands", `{"command": "/ask", "description": "Ask", "usage_hint": "[text]", "should_escape": false}`, strings.Join(commands, ","), "/features/slash_commands", ""},
		{"no commands", `[{"command": "/ask", "description": "Ask", "usage_hint": "[text]", "should_escape": false}]`, "[]", "/features/slash_commands", ""},
		{"interactivity without a URL", `"socket_mode_enabled": true`, `"socket_mode_enabled": false`, "/settings/interactivity/request_url", ""},
		{"version", `"major_version": 2`, `"major_version": 3`, "/_metadata/major_version", ""},
	} {
		text := strings.Replace(goodManifest, c.was, c.is, 1)
		require.NotEqual(t, goodManifest, text, c.name)
		found := ValidateManifest([]byte(text))
		require.NotEmpty(t, found, c.name)
		require.Equal(t, c.pointer, found[0].Pointer, "%s: %+v", c.name, found)
		require.Equal(t, c.code, found[0].Code, c.name)
	}
}
