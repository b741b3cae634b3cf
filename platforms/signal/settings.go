package signal

import (
	"regexp"
	"strings"

	"herald/platforms"
)

// Settings is the block platforms.signal.
type Settings struct {
	platforms.Common
	HTTPURL           string `yaml:"http_url" default:"http://127.0.0.1:8080" env:"SIGNAL_HTTP_URL" check:"url" doc:"the HTTP interface of signal-cli daemon --http"`
	Account           string `yaml:"account" env:"SIGNAL_ACCOUNT" check:"text" doc:"our phone number, with + and the country code"`
	ReadReceipts      bool   `yaml:"send_read_receipts" default:"false" doc:"tell people that their message was read, once it is being answered"`
	IgnoreAttachments bool   `yaml:"ignore_attachments" default:"false" doc:"leave the files of people out"`
}

// On reports whether Signal is to be started: enabled, or not set and an account is there.
func (s Settings) On() bool { return s.Starts(s.Account != "") }

// groupChat begins the chat id of a group.
const groupChat = "group:"

// phone is what tells a person's number from a group's id, which is base64 and may begin with "+" too.
var phone = regexp.MustCompile(`^\+[0-9 ().-]{5,24}$`)

// Groups returns the ids of the groups where the account answers; "*" is all, none is none. Signal's users know
// SIGNAL_GROUP_ALLOWED_USERS as a list of groups, so both lists for groups may hold them. A person in one of them, or in
// group_allow_from, opens all groups to the rules of who may talk.
func (s Settings) Groups() []string {
	var out []string
	people := len(s.GroupAllowFrom) > 0
	for _, id := range append(append([]string{}, s.GroupAllowedChats...), s.GroupAllowedUsers...) {
		switch id = strings.TrimSpace(id); {
		case id == "":
		case isPerson(id):
			people = true
		default:
			out = append(out, strings.TrimPrefix(id, groupChat))
		}
	}
	if people {
		out = append(out, "*")
	}
	return out
}

// Shared implements platforms.Settings. Groups come in the form of chat ids. "*" for groups only switches groups on: who may talk
// in them is still decided by the lists of people, because anybody can put the account into a group.
func (s Settings) Shared() platforms.Common {
	p := s.Common
	p.GroupAllowedChats, p.GroupAllowedUsers = nil, nil
	for _, id := range s.Groups() {
		if id != "*" {
			p.GroupAllowedChats = append(p.GroupAllowedChats, groupChat+id)
		}
	}
	for _, id := range s.GroupAllowedUsers {
		if id = strings.TrimSpace(id); isPerson(id) {
			p.GroupAllowedUsers = append(p.GroupAllowedUsers, id)
		}
	}
	p.AllowedChats = nil
	for _, id := range s.AllowedChats {
		if id = strings.TrimSpace(id); id != "*" && id != "" {
			id = groupChat + strings.TrimPrefix(id, groupChat)
		}
		p.AllowedChats = append(p.AllowedChats, id)
	}
	return p
}

// isPerson reports whether an id is a phone number or a UUID.
func isPerson(id string) bool {
	return phone.MatchString(id) || len(id) == 36 && strings.Count(id, "-") == 4
}
