package tree

import "strings"

// placeholders are values that come with templates and are never a real secret.
var placeholders = [...]string{"changeme", "change-me", "change_me", "your-token-here", "your_token_here", "yourtoken",
	"your-token", "your_token", "your-bot-token", "your_bot_token", "your-api-key", "your_api_key", "your-api-key-here",
	"your_api_key_here", "your-key-here", "your-secret", "your_secret", "placeholder", "example", "password",
	"insert-token-here", "replace-me", "replace_me", "replaceme"}

// placeholder reports why a secret can't be a real one; "" when it may be.
func placeholder(v string) string {
	low := strings.ToLower(strings.TrimSpace(v))
	for _, p := range placeholders {
		if low == p || low == "<"+p+">" || low == "${"+p+"}" {
			return "is a placeholder"
		}
	}
	switch {
	case len(low) < 4:
		return "is shorter than 4 characters"
	case strings.Trim(low, "x*.-_") == "":
		return "is a placeholder"
	case strings.HasPrefix(low, "<") && strings.HasSuffix(low, ">"):
		return "is a placeholder"
	case strings.HasPrefix(low, "${") || strings.HasPrefix(low, "$("):
		return "is a variable that was not replaced"
	case strings.ContainsAny(v, "\r\n\x00"):
		return "contains a line break"
	}
	return ""
}
