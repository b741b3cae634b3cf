package teams

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"image/png"
	"io"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/teamstest"
)

func manifestOptions() ManifestOptions {
	o := ManifestOptions{BotID: teamstest.DefaultAppID}
	for _, name := range append([]string{"alpha", "beta", "gamma"}, menuOrder...) {
		o.Commands = append(o.Commands, platforms.CommandInfo{Name: name, Description: strings.Repeat("what it does ", 15)})
	}
	o.Commands = append(o.Commands, platforms.CommandInfo{Name: strings.Repeat("long", 9), Description: "x"})
	return o
}

// The package holds to the rules of the manifest's schema: lengths, patterns, counts, and the sizes of icons.
func TestPackage_KeepsTheSchema(t *testing.T) {
	o := manifestOptions()
	o.RSC, o.Domains = true, []string{"herald.example.org", "*.example.org"}
	raw, err := Package(o)
	require.NoError(t, err)
	again, err := Package(o)
	require.NoError(t, err)
	require.True(t, bytes.Equal(raw, again), "the same options give the same package")
	z, err := zip.NewReader(bytes.NewReader(raw), int64(len(raw)))
	require.NoError(t, err)
	files := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		require.NoError(t, err)
		files[f.Name], err = io.ReadAll(r)
		require.NoError(t, err)
	}
	require.Len(t, files, 3)

	var m map[string]any
	require.NoError(t, json.Unmarshal(files["manifest.json"], &m))
	known := []string{"$schema", "manifestVersion", "version", "id", "developer", "name", "description", "icons", "accentColor", "bots",
		"permissions", "validDomains", "webApplicationInfo", "authorization"}
	for key := range m {
		require.Contains(t, known, key)
	}
	require.Equal(t, "https://developer.microsoft.com/json-schemas/teams/v"+m["manifestVersion"].(string)+"/MicrosoftTeams.schema.json", m["$schema"])
	guid := regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	require.Regexp(t, guid, m["id"])
	require.Regexp(t, `^#[0-9a-fA-F]{6}$`, m["accentColor"])
	require.Regexp(t, `^\d+\.\d+\.\d+$`, m["version"])
	length := func(object, key string, most int) {
		t.Helper()
		s := m[object].(map[string]any)[key].(string)
		require.NotEmpty(t, s)
		require.LessOrEqual(t, utf8.RuneCountInString(s), most, "%s.%s", object, key)
	}
	length("name", "short", 30)
	length("name", "full", 100)
	length("description", "short", 80)
	length("description", "full", 4000)
	length("developer", "name", 32)
	for _, key := range []string{"websiteUrl", "privacyUrl", "termsOfUseUrl"} {
		require.Regexp(t, `^https://`, m["developer"].(map[string]any)[key])
	}
	bots := m["bots"].([]any)
	require.Len(t, bots, 1)
	bot := bots[0].(map[string]any)
	require.Regexp(t, guid, bot["botId"])
	require.Equal(t, []any{"personal", "team", "groupChat"}, bot["scopes"])
	require.Equal(t, true, bot["supportsFiles"])
	lists := bot["commandLists"].([]any)
	require.Len(t, lists, 1)
	commands := lists[0].(map[string]any)["commands"].([]any)
	require.Len(t, commands, 10)
	for i, c := range commands {
		c := c.(map[string]any)
		require.Equal(t, "/"+menuOrder[i], c["title"])
		require.LessOrEqual(t, utf8.RuneCountInString(c["title"].(string)), 32)
		require.LessOrEqual(t, utf8.RuneCountInString(c["description"].(string)), 128)
	}
	require.Equal(t, teamstest.DefaultAppID, m["webApplicationInfo"].(map[string]any)["id"])
	require.JSONEq(t, `{"permissions":{"resourceSpecific":[{"name":"ChannelMessage.Read.Group","type":"Application"},{"name":"ChatMessage.Read.Chat","type":"Application"}]}}`,
		string(mustRaw(t, m["authorization"])))
	require.Equal(t, []any{"herald.example.org", "*.example.org"}, m["validDomains"])

	icons := m["icons"].(map[string]any)
	for key, size := range map[string]int{"color": 192, "outline": 32} {
		img, err := png.Decode(bytes.NewReader(files[icons[key].(string)]))
		require.NoError(t, err)
		require.Equal(t, size, img.Bounds().Dx())
		require.Equal(t, size, img.Bounds().Dy())
		clear, white := 0, 0
		for y := range size {
			for x := range size {
				r, g, b, a := img.At(x, y).RGBA()
				if a == 0 {
					clear++
				} else if r == a && g == a && b == a {
					white++
				} else {
					require.Equal(t, "color", key, "the outline icon is white on nothing")
				}
			}
		}
		require.Positive(t, white)
		require.Equal(t, key == "outline", clear > 0)
	}
}

func mustRaw(t *testing.T, v any) []byte {
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return raw
}

// Without the flag the app asks for no more than mentions.
func TestManifest_WithoutRSC(t *testing.T) {
	raw, err := Manifest(ManifestOptions{BotID: strings.ToUpper(teamstest.DefaultAppID)})
	require.NoError(t, err)
	require.NotContains(t, string(raw), "resourceSpecific")
	require.NotContains(t, string(raw), "webApplicationInfo")
	require.NotContains(t, string(raw), "commandLists")
	require.Contains(t, string(raw), `"validDomains": []`)
}

func TestManifest_WrongOptionsAreNamed(t *testing.T) {
	for want, alter := range map[string]func(*ManifestOptions){
		"bot's id":   func(o *ManifestOptions) { o.BotID = "" },
		"GUID":       func(o *ManifestOptions) { o.BotID = "herald" },
		"name":       func(o *ManifestOptions) { o.Name = strings.Repeat("ü", 31) },
		"developer":  func(o *ManifestOptions) { o.Developer = strings.Repeat("x", 33) },
		"version":    func(o *ManifestOptions) { o.Version = "1.0" },
		"https":      func(o *ManifestOptions) { o.Website = "http://example.org" },
		"domain":     func(o *ManifestOptions) { o.Domains = []string{"https://x.example"} },
		"17 domains": func(o *ManifestOptions) { o.Domains = make([]string, 17) },
	} {
		o := manifestOptions()
		alter(&o)
		_, err := Package(o)
		require.ErrorContains(t, err, want)
	}
}
