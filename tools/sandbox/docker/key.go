package docker

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Labels that every container of Herald carries. A container is taken up again only where all of them match.
const (
	labelAgent    = "herald-agent"    // "1"
	labelTask     = "herald-task-id"  // the sanitised key
	labelIdentity = "herald-profile"  // whose it is, see identity
	labelEgress   = "herald-egress"   // "open", or "none" without a network
	labelHome     = "herald-sandbox"  // which sandbox directory its files are in
	labelLifetime = "herald-lifetime" // "durable" or "throwaway"
)

// maxLabel is the longest sanitised value, in bytes.
const maxLabel = 63

// Request says for whom a container is wanted.
type Request struct {
	// Persistent is true for containers whose files outlive them.
	Persistent bool
	// Shared is the shared container key of the configuration, empty for none.
	Shared string
	// Profile is the profile's name; empty is the default one.
	Profile string
	// Session is the key of the chat session, empty on the command line.
	Session string
}

// containerKey says which container a request gets: requests with equal keys share one. The first rule that applies wins.
//
//  1. Persistent with a shared key: everybody has that one, whatever session or profile.
//  2. Without a session it is the default one.
//  3. Where nothing persists each session has its own.
//  4. Persistent: each profile has exactly one, whatever the session. The default profile has the default one.
func containerKey(r Request) string {
	switch {
	case r.Persistent && r.Shared != "":
		return "shared:" + r.Shared
	case r.Session == "":
		return "default"
	case !r.Persistent:
		return "session:" + r.Session
	case r.Profile == "" || r.Profile == "default":
		return "default"
	}
	return "profile:" + r.Profile
}

// labelText makes a label value of a key: characters outside A-Z, a-z, 0-9, "_", "." and "-" become "_", and it is cut
// at 63 bytes. Different keys may become equal, so a value alone never decides whose a container is.
func labelText(key string) string { return sanitise(key, maxLabel) }

func sanitise(key string, most int) string {
	var b strings.Builder
	for _, c := range key {
		switch {
		case c >= 'A' && c <= 'Z', c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_', c == '.', c == '-':
			b.WriteRune(c)
		default:
			b.WriteByte('_')
		}
	}
	s := b.String()
	if s == "" {
		s = "unknown"
	}
	return s[:min(len(s), most)]
}

// identity is the label that says whose a container is: the profile's name, or with a shared key its readable beginning
// and 12 hex digits of the SHA-256 of all of it. So two shared keys never meet, however much alike they look, and one
// key gives the same identity in every process.
func identity(profile, shared string) string {
	if shared == "" {
		if profile == "" {
			profile = "default"
		}
		return labelText(profile)
	}
	return sanitise(shared, 50) + "-" + digest(shared)
}

// digest is the first 12 hex digits of a SHA-256.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])[:12]
}

// KeyDir names the directory of a key's files below the sandbox directory: the sanitised key where nothing is lost by
// that ("default", "profile_work"), and with the digest of the key behind it everywhere else, so that two keys never
// share files.
func KeyDir(key string) string {
	plain := key
	if name, ok := strings.CutPrefix(key, "profile:"); ok {
		plain = "profile_" + name
	}
	if s := labelText(key); s == plain && (key == "default" || plain != key) {
		return s
	}
	return sanitise(key, 50) + "-" + digest(key)
}
