package teams

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"
	"unicode/utf8"

	"herald/platforms"
)

// The schema that the manifest keeps, and its limits, in characters:
// https://learn.microsoft.com/microsoftteams/platform/resources/schema/manifest-schema
const (
	manifestVersion = "1.19"
	manifestSchema  = "https://developer.microsoft.com/json-schemas/teams/v" + manifestVersion + "/MicrosoftTeams.schema.json"

	maxShortName        = 30
	maxFullName         = 100
	maxShortDescription = 80
	maxFullDescription  = 4000
	maxDeveloper        = 32
	maxCommandTitle     = 32
	maxCommandText      = 128
	maxMenu             = 10 // commands of a list
	maxDomains          = 16
)

// ManifestOptions say what the app is called. Only BotID is mandatory.
type ManifestOptions struct {
	// BotID is the bot's application id, a GUID.
	BotID string
	// Name is what people see and mention, at most 30 characters. Empty is "Herald".
	Name string
	// Version is the package's: a higher one replaces an installed app. Empty is "1.0.0".
	Version string
	// Developer, Website, Privacy and Terms are shown in the app's details. The addresses are https.
	Developer, Website, Privacy, Terms string
	// RSC asks for every message of the chats and channels where the app is, and not only for mentions.
	RSC bool
	// Domains are those that links in cards may lead to sign-in pages of; none is needed.
	Domains []string
	// Commands are what the menu of the compose box offers; Teams shows the first ten.
	Commands []platforms.CommandInfo
}

type manifest struct {
	Schema        string              `json:"$schema"`
	Version       string              `json:"manifestVersion"`
	AppVersion    string              `json:"version"`
	ID            string              `json:"id"`
	Developer     manifestDeveloper   `json:"developer"`
	Name          manifestPair        `json:"name"`
	Description   manifestPair        `json:"description"`
	Icons         manifestIcons       `json:"icons"`
	AccentColor   string              `json:"accentColor"`
	Bots          []manifestBot       `json:"bots"`
	Permissions   []string            `json:"permissions"`
	ValidDomains  []string            `json:"validDomains"`
	WebApp        *manifestWebApp     `json:"webApplicationInfo,omitempty"`
	Authorization *manifestPermission `json:"authorization,omitempty"`
}

type manifestDeveloper struct {
	Name    string `json:"name"`
	Website string `json:"websiteUrl"`
	Privacy string `json:"privacyUrl"`
	Terms   string `json:"termsOfUseUrl"`
}

type manifestPair struct {
	Short string `json:"short"`
	Full  string `json:"full"`
}

type manifestIcons struct {
	Color   string `json:"color"`
	Outline string `json:"outline"`
}

type manifestBot struct {
	ID               string         `json:"botId"`
	Scopes           []string       `json:"scopes"`
	SupportsFiles    bool           `json:"supportsFiles"`
	NotificationOnly bool           `json:"isNotificationOnly"`
	CommandLists     []manifestMenu `json:"commandLists,omitempty"`
}

type manifestMenu struct {
	Scopes   []string          `json:"scopes"`
	Commands []manifestCommand `json:"commands"`
}

type manifestCommand struct {
	Title       string `json:"title"`
	Description string `json:"description"`
}

type manifestWebApp struct {
	ID       string `json:"id"`
	Resource string `json:"resource"`
}

type manifestPermission struct {
	Permissions struct {
		Specific []resourcePermission `json:"resourceSpecific"`
	} `json:"permissions"`
}

type resourcePermission struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

// botScopes are where the bot can be put.
var botScopes = []string{"personal", "team", "groupChat"}

// menuOrder are the commands that a menu of ten should have before others.
var menuOrder = []string{"help", "new", "stop", "status", "retry", "undo", "rollback", "model", "sessions", "sethome"}

var (
	versionPattern = regexp.MustCompile(`^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})$`)
	domainPattern  = regexp.MustCompile(`^(\*\.)?([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}$`)
)

// Manifest returns the app's manifest as JSON. An error names the option that Teams would refuse.
func Manifest(o ManifestOptions) ([]byte, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	m := manifest{
		Schema: manifestSchema, Version: manifestVersion, AppVersion: o.Version, ID: o.BotID,
		Developer: manifestDeveloper{o.Developer, o.Website, o.Privacy, o.Terms},
		Name:      manifestPair{o.Name, o.Name},
		Description: manifestPair{
			Short: "An AI agent that answers in chats and channels",
			Full: "Write to the bot in a personal chat, or mention it in a group chat or a channel. Replies stay in their thread. " +
				"It works with files, asks before it does something dangerous, and can be stopped with /stop.",
		},
		Icons: manifestIcons{"color.png", "outline.png"}, AccentColor: accentColor,
		Bots:        []manifestBot{{ID: o.BotID, Scopes: botScopes, SupportsFiles: true}},
		Permissions: []string{"identity", "messageTeamMembers"}, ValidDomains: o.Domains,
	}
	if menu := menuOf(o.Commands); len(menu) > 0 {
		m.Bots[0].CommandLists = []manifestMenu{{Scopes: botScopes, Commands: menu}}
	}
	if o.RSC {
		m.WebApp = &manifestWebApp{ID: o.BotID, Resource: "https://RscBasedStoreApp"}
		m.Authorization = &manifestPermission{}
		m.Authorization.Permissions.Specific = []resourcePermission{{"ChannelMessage.Read.Group", "Application"}, {"ChatMessage.Read.Chat", "Application"}}
	}
	out, err := json.MarshalIndent(m, "", "  ")
	return append(out, '\n'), err
}

// Package returns the app as a zip archive that Teams takes (Apps, Manage your apps, Upload an app): the manifest and two
// icons. The same options give the same bytes.
func Package(o ManifestOptions) ([]byte, error) {
	text, err := Manifest(o)
	if err != nil {
		return nil, err
	}
	color, outline, err := icons()
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for _, f := range []struct {
		name string
		body []byte
	}{{"manifest.json", text}, {"color.png", color}, {"outline.png", outline}} {
		w, err := z.CreateHeader(&zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)})
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(f.body); err != nil {
			return nil, err
		}
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// fill checks the options and fills in the defaults.
func (o *ManifestOptions) fill() error {
	for _, d := range []struct {
		value *string
		def   string
	}{
		{&o.Name, "Herald"}, {&o.Version, "1.0.0"}, {&o.Developer, "Herald"}, {&o.Website, "https://example.com"},
		{&o.Privacy, "https://example.com/privacy"}, {&o.Terms, "https://example.com/terms"},
	} {
		if *d.value = strings.TrimSpace(*d.value); *d.value == "" {
			*d.value = d.def
		}
	}
	o.BotID = strings.ToLower(strings.TrimSpace(o.BotID))
	if o.Domains == nil {
		o.Domains = []string{}
	}
	switch {
	case o.BotID == "":
		return errors.New("the bot's id is missing: set TEAMS_CLIENT_ID or --bot-id to the Application (client) ID")
	case !guidPattern.MatchString(o.BotID):
		return fmt.Errorf("bot id %q is no GUID: want the Application (client) ID of the app registration", o.BotID)
	case utf8.RuneCountInString(o.Name) > maxShortName:
		return fmt.Errorf("name %q has more than %d characters", o.Name, maxShortName)
	case utf8.RuneCountInString(o.Developer) > maxDeveloper:
		return fmt.Errorf("developer %q has more than %d characters", o.Developer, maxDeveloper)
	case !versionPattern.MatchString(o.Version):
		return fmt.Errorf("version %q: want three numbers such as 1.0.2", o.Version)
	case len(o.Domains) > maxDomains:
		return fmt.Errorf("%d domains, at most %d are taken", len(o.Domains), maxDomains)
	}
	for _, address := range []string{o.Website, o.Privacy, o.Terms} {
		if u, err := url.Parse(address); err != nil || u.Scheme != "https" || u.Host == "" || len(address) > 2048 {
			return fmt.Errorf("%q: want an https address", address)
		}
	}
	for _, domain := range o.Domains {
		if !domainPattern.MatchString(domain) {
			return fmt.Errorf("domain %q: want a name such as herald.example.org, without scheme and path", domain)
		}
	}
	return nil
}

// menuOf picks the commands of the menu: what people need most, then others in their order.
func menuOf(all []platforms.CommandInfo) []manifestCommand {
	var menu []manifestCommand
	taken := map[string]bool{}
	add := func(c platforms.CommandInfo) {
		title := "/" + c.Name
		if len(menu) == maxMenu || taken[c.Name] || c.Description == "" || utf8.RuneCountInString(title) > maxCommandTitle {
			return
		}
		taken[c.Name] = true
		menu = append(menu, manifestCommand{Title: title, Description: firstRunes(c.Description, maxCommandText)})
	}
	for _, name := range menuOrder {
		for _, c := range all {
			if c.Name == name {
				add(c)
			}
		}
	}
	for _, c := range all {
		add(c)
	}
	return menu
}

func firstRunes(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}
