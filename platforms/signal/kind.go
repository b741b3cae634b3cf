package signal

import (
	"net/http"
	"strings"

	"herald/platforms"
)

// Kind is what Herald knows of Signal.
type Kind struct{}

// Name implements platforms.Kind.
func (Kind) Name() platforms.Name { return Platform }

// About implements platforms.Kind.
func (Kind) About() platforms.About {
	return platforms.About{Title: "Signal", Block: "a Signal account through signal-cli", Variables: "SIGNAL"}
}

// Settings implements platforms.Kind.
func (Kind) Settings() platforms.Settings { return &Settings{} }

// Rules implements platforms.Kind. A chat is a group, or a person by their number or UUID.
func (Kind) Rules() platforms.Rules {
	return platforms.Rules{
		NormalID: normalID, GroupOf: groupOf, IDPrefixes: []string{groupChat}, HomeRank: 4,
		DirectChat: func(chat platforms.ChatID) bool { return chat != "" && !strings.HasPrefix(string(chat), groupChat) },
	}
}

// normalID writes phone numbers without separators and UUIDs in lower case.
func normalID(id string) string {
	if strings.HasPrefix(id, "+") {
		return strings.NewReplacer(" ", "", "-", "", "(", "", ")", "", ".", "").Replace(id)
	}
	if len(id) == 36 {
		return strings.ToLower(id)
	}
	return id
}

// groupOf knows the groups among group_allowed_users: that is where Signal's users name the groups that are answered
// (SIGNAL_GROUP_ALLOWED_USERS), by their id. It can't be taken for a person's: that is a number or a UUID. "*" means every
// person in groups, as everywhere.
func groupOf(entry string) (platforms.ChatID, bool) {
	if entry == "" || entry == "*" || entry[0] == '+' || entry[0] == '@' || len(entry) == 36 && strings.Count(entry, "-") == 4 {
		return "", false
	}
	return platforms.ChatID(groupChat + strings.TrimPrefix(entry, groupChat)), true
}

// New makes the one account of a phone number.
func (Kind) New(host platforms.Host, own platforms.Settings) ([]platforms.Login, error) {
	s := own.(*Settings)
	number := platforms.Account{Platform: Platform, ID: platforms.AccountID(Number(s.Account))}
	adapter, err := New(Options{
		URL: s.HTTPURL, Account: s.Account, IgnoreProxyEnv: !host.TrustEnv, AllowedChats: s.AllowedChats,
		RequireMention: s.RequireMention, FreeChats: s.FreeResponseChats, MentionPatterns: s.MentionPatterns,
		IgnoreAttachments: s.IgnoreAttachments, Reactions: host.Reactions, ReadReceipts: s.ReadReceipts,
		Groups: func() []string { return host.Live().(*Settings).Groups() },
		Memory: host.Memory(number), Log: host.Log, Metrics: host.Metrics,
	})
	if err != nil {
		return nil, err
	}
	return []platforms.Login{{Adapter: adapter, LockName: "signal-phone", Identity: string(adapter.Account().ID)}}, nil
}

// Pages implements platforms.Pager: the page that links a phone.
func (Kind) Pages(desk platforms.Desk) map[string]http.Handler {
	l := &linkPage{desk: desk}
	return map[string]http.Handler{
		"GET /signal/link":  http.HandlerFunc(l.show),
		"POST /signal/link": http.HandlerFunc(l.begin),
	}
}
