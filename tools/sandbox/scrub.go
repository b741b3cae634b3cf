package sandbox

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// ownPrefixes begin the variables that configure the daemon: its own, and those of platforms and model
// providers. They never reach a command, whatever the passthrough list says.
var ownPrefixes = []string{
	"HERALD_", "SLACK_", "TELEGRAM_", "DISCORD_", "SIGNAL_", "TEAMS_", "MSTEAMS_", "OPENAI_", "ANTHROPIC_",
	"OPENROUTER_", "GEMINI_", "MISTRAL_", "GROQ_", "XAI_", "DEEPSEEK_", "TOGETHER_", "COHERE_", "AZURE_OPENAI_",
}

// secretWords mark a variable when one is a whole part of its name between underscores.
var secretWords = map[string]bool{
	"KEY": true, "KEYS": true, "AUTH": true, "PASS": true, "PW": true, "CRED": true, "CREDS": true,
	"COOKIE": true, "COOKIES": true, "DSN": true, "JWT": true, "PAT": true, "BEARER": true, "PIN": true,
	"PASSPHRASE": true, "OAUTH": true,
}

// secretParts mark a variable wherever they are in its name.
var secretParts = []string{"TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "APIKEY", "PRIVATEKEY", "ACCESSKEY"}

// userInfo finds a URL that carries a password.
var userInfo = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]*://[^/@\s]*:[^/@\s]+@`)

// SecretName reports whether a variable's name says that it holds a credential. Case does not matter.
func SecretName(name string) bool {
	up := strings.ToUpper(name)
	for _, part := range secretParts {
		if strings.Contains(up, part) {
			return true
		}
	}
	words := strings.Split(up, "_")
	for i, w := range words {
		if secretWords[w] || strings.HasSuffix(w, "KEY") && w != "MONKEY" || i > 0 && w == "PWD" {
			return true
		}
	}
	return false
}

// ownName reports whether a variable configures the daemon, its platforms or its model providers.
func ownName(name string) bool {
	up := strings.ToUpper(name)
	for _, p := range ownPrefixes {
		if strings.HasPrefix(up, p) {
			return true
		}
	}
	return false
}

// CheckPassthrough splits a passthrough list into the names that may reach commands and those that are
// refused because they belong to the daemon.
func CheckPassthrough(names []string) (allowed, refused []string) {
	for _, n := range names {
		if n == "" {
			continue
		}
		if ownName(n) {
			refused = append(refused, n)
		} else {
			allowed = append(allowed, n)
		}
	}
	return allowed, refused
}

// Scrub returns the variables of environ ("NAME=value") that a command may see, as a map. A variable is
// left out when it belongs to the daemon, when its name says that it is a credential, when its value is a
// URL with a password, or when deny names it. passthrough brings back all but the daemon's own and denied
// ones. Names compare without case, as they did when the secret was registered.
func Scrub(environ, passthrough, deny []string) map[string]string {
	out := make(map[string]string, len(environ))
	for _, kv := range environ {
		name, value, ok := strings.Cut(kv, "=")
		if !ok || name == "" || !keep(name, value, passthrough, deny) {
			continue
		}
		out[name] = value
	}
	return out
}

func keep(name, value string, passthrough, deny []string) bool {
	same := func(other string) bool { return strings.EqualFold(name, other) }
	switch {
	case ownName(name), slices.ContainsFunc(deny, same):
		return false
	case slices.ContainsFunc(passthrough, same):
		return true
	default:
		return !SecretName(name) && !userInfo.MatchString(value)
	}
}

// Environ turns a map back into "NAME=value" lines in order of name.
func Environ(vars map[string]string) []string {
	out := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		out = append(out, name+"="+vars[name])
	}
	return out
}
