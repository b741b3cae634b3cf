package slack

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"

	"herald/platforms"
)

var botNumbers = regexp.MustCompile(`^xoxb-(\d+)-(\d+)-`)

// accountOf makes the account's id of a bot token: its two numbers name the workspace and the bot and outlast a
// new secret. A token without them is known by its hash.
func accountOf(token string) platforms.AccountID {
	if m := botNumbers.FindStringSubmatch(token); m != nil {
		return platforms.AccountID(m[1] + "-" + m[2])
	}
	sum := sha256.Sum256([]byte(token))
	return platforms.AccountID("t" + hex.EncodeToString(sum[:6]))
}

// SplitTokens reads a comma list of bot tokens, as SLACK_BOT_TOKEN holds it.
func SplitTokens(list string) []Token {
	var out []Token
	for t := range strings.SplitSeq(list, ",") {
		if t = strings.TrimSpace(t); t != "" {
			out = append(out, Token{Token: t})
		}
	}
	return out
}

// maxTokensFile bounds slack_tokens.json.
const maxTokensFile = 1 << 20

// ReadTokens reads a file that maps a workspace's id to {"token", "team_name"}, in the order of the ids. No file
// is no token. The error names the file and what is wrong, and repeats nothing of it.
func ReadTokens(path string) ([]Token, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var byTeam map[string]struct {
		Token string `json:"token"` // team_name is for people
	}
	if err := json.NewDecoder(io.LimitReader(f, maxTokensFile)).Decode(&byTeam); err != nil {
		return nil, fmt.Errorf("%s is no JSON object of workspace ids with token and team_name", path)
	}
	var out []Token
	for team, t := range byTeam {
		if t.Token = strings.TrimSpace(t.Token); t.Token != "" {
			out = append(out, Token{Token: t.Token, Team: team})
		}
	}
	slices.SortFunc(out, func(a, b Token) int { return strings.Compare(a.Team, b.Team) })
	return out, nil
}
