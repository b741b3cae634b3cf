package cron

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"unicode"

	"herald/platforms"
)

// MaxTargets is how many targets one job may name, and MaxDeliver how many bytes they may take.
const (
	MaxTargets = 32
	MaxDeliver = 2000
)

// Token is one target of a job as its author wrote it.
type Token struct {
	// Text is the token itself, without the space around it.
	Text string
	// Target is what it says; Word may also be DeliverAll.
	platforms.Target
}

// JoinDeliver writes a list of targets as the one value that a job keeps; blank entries are left out, and nothing at all
// is DeliverLocal.
func JoinDeliver(list []string) string {
	var kept []string
	for _, s := range list {
		if s = strings.TrimSpace(s); s != "" {
			kept = append(kept, s)
		}
	}
	if len(kept) == 0 {
		return DeliverLocal
	}
	return strings.Join(kept, ",")
}

// platformShape is what the name of a platform may look like, in lower case.
var platformShape = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,31}$`)

// ParseDeliver reads where a job's output goes: targets with commas between them, so no target can hold a comma.
//
//	local | origin | all | <platform>[/<account>] | <platform>[/<account>]:<chat>[:<thread>]
//
// Blank targets are left out; an empty value is DeliverLocal. It knows no platforms: whether one runs is found when the job
// does. Every error names the target that it is about and what is allowed.
func ParseDeliver(value string) ([]Token, error) {
	if len(value) > MaxDeliver {
		return nil, fmt.Errorf("deliver: %d bytes are too many; %d are allowed", len(value), MaxDeliver)
	}
	var tokens []Token
	for part := range strings.SplitSeq(value, ",") {
		text := strings.TrimSpace(part)
		if text == "" {
			continue
		}
		token, err := parseToken(text)
		if err != nil {
			return nil, err
		}
		tokens = append(tokens, token)
	}
	if len(tokens) > MaxTargets {
		return nil, fmt.Errorf("deliver: %d targets are too many; %d are allowed", len(tokens), MaxTargets)
	}
	if len(tokens) == 0 {
		tokens = []Token{{Text: DeliverLocal, Target: platforms.Target{Word: DeliverLocal}}}
	}
	return tokens, nil
}

func parseToken(text string) (Token, error) {
	t, err := platforms.ParseTarget(text)
	name := cmp.Or(t.Word, string(t.Platform))
	var wrong *platforms.TargetError
	switch {
	case strings.ContainsFunc(text, unicode.IsControl):
		return Token{}, badTarget(text, "it holds a control character")
	case name == "bot-chat" || name == "bot_chat":
		return Token{}, badTarget(text, "there is no bot chat; the browser chat is called web: write web or web:<chat>")
	case name == DeliverLocal || name == DeliverOrigin || name == DeliverAll:
		if err != nil || t.Account != "" || t.Place != "" {
			return Token{}, badTarget(text, fmt.Sprintf("%q stands alone", name))
		}
		return Token{Text: text, Target: platforms.Target{Word: name}}, nil
	case !platformShape.MatchString(name):
		return Token{}, badTarget(text, "it begins with no name of a platform")
	case errors.As(err, &wrong):
		return Token{}, badTarget(text, "it "+wrong.Reason)
	}
	return Token{Text: text, Target: t}, nil
}

func badTarget(text, why string) error {
	return fmt.Errorf("delivery target %q: %s. Allowed are local, origin, all, <platform>, <platform>:<chat> and <platform>:<chat>:<thread>, "+
		"with commas between them; an account goes behind the platform's name: <platform>/<account>", text, why)
}
