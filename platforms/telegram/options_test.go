package telegram

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
)

func TestNew_RefusesBadOptions(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	for _, c := range []struct {
		name string
		o    Options
		key  string
		says string
	}{
		{"no token", Options{}, "token", "is empty"},
		{"no colon", Options{Token: "hunter2hunter2"}, "token", "want digits"},
		{"no id", Options{Token: ":hunter2hunter2"}, "token", "want digits"},
		{"no secret part", Options{Token: "123:"}, "token", "want digits"},
		{"a space", Options{Token: "123:hunter2 hunter2"}, "token", "want digits"},
		{"a slash", Options{Token: "123:hunter2/hunter2"}, "token", "want digits"},
		{"base url", Options{Token: testToken, BaseURL: "localhost:8081"}, "base_url", "scheme http or https"},
		{"file url", Options{Token: testToken, FileURL: "ftp://x"}, "base_file_url", "scheme http or https"},
		{"local root relative", Options{Token: testToken, LocalRoot: "data"}, "local_root", "not an absolute path"},
		{"local root a file", Options{Token: testToken, LocalRoot: file}, "local_root", "not a folder"},
		{"proxy", Options{Token: testToken, Proxy: "gopher://user:hunter2hunter2@x"}, "proxy", "socks5"},
		{"webhook without secret", Options{Token: testToken, WebhookURL: "https://x.example/hook"}, "webhook_secret", "is missing"},
		{"webhook bad secret", Options{Token: testToken, WebhookURL: "https://x.example", WebhookSecret: "hunter2 hunter2"}, "webhook_secret", "A-Z a-z 0-9"},
		{"webhook url", Options{Token: testToken, WebhookURL: "x.example", WebhookSecret: "s"}, "webhook_url", "absolute URL"},
		{"webhook path", Options{Token: testToken, WebhookPath: "hook"}, "webhook_path", "starts with /"},
		{"max commands", Options{Token: testToken, MaxCommands: 101}, "max_commands", "1 to 100"},
		{"poll timeout", Options{Token: testToken, PollTimeout: time.Millisecond}, "poll_timeout", "at least 1s"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := New(c.o)
			var start *platforms.StartError
			require.ErrorAs(t, err, &start)
			require.ErrorIs(t, err, platforms.ErrPermanent)
			require.Equal(t, "platforms.telegram."+c.key, start.Setting)
			require.ErrorContains(t, err, c.says)
			require.NotContains(t, err.Error(), "hunter2")
			require.NotContains(t, err.Error(), "super-secret")
		})
	}
}

func TestNew_Defaults(t *testing.T) {
	a, err := New(Options{Token: testToken, MentionPatterns: []string{"(", "herald"}})
	require.NoError(t, err)
	require.Equal(t, platforms.Account{Platform: "telegram", ID: "4242"}, a.Account())
	require.Equal(t, []string{testToken, "AAH-super-secret_part"}, a.Secrets())
	require.Len(t, a.s.patterns, 1, "a bad pattern is ignored")
	require.Empty(t, a.Routes())
	want := platforms.Traits{
		Text: platforms.TextTraits{Dialect: platforms.TelegramHTML, Limit: 4096, Unit: platforms.UTF16, Number: true},
		Tier: platforms.TierHighQuiet, Edit: true, Buttons: true, Threads: true, Attachments: true,
		MaxUpload: 50 << 20, EditInterval: time.Second, CommandPrefix: "/",
	}
	require.Equal(t, want, a.Traits())
	a, err = New(Options{Token: testToken, BaseURL: "http://127.0.0.1:8081/", RateLimit: new(bool)})
	require.NoError(t, err)
	for _, base := range []string{"http://127.0.0.1:8081/", "http://127.0.0.1:8081/bot", "http://127.0.0.1:8081/bot/"} {
		b, err := New(Options{Token: testToken, BaseURL: base, FileURL: "http://files.example/file/bot", WebhookSecret: "hook", Proxy: "http://me:proxy-pass@127.0.0.1:3128"})
		require.NoError(t, err)
		require.Equal(t, "http://127.0.0.1:8081", b.s.BaseURL)
		require.Equal(t, "http://files.example/file", b.s.files)
		require.Equal(t, []string{testToken, "AAH-super-secret_part", "hook", "proxy-pass"}, b.Secrets())
	}
	want.MaxUpload, want.EditInterval = 2000<<20, 0
	require.Equal(t, want, a.Traits())
	require.False(t, a.Health().Inbound)
	require.Equal(t, "starting", a.Health().State)
}

func TestClean_KeepsContextErrors(t *testing.T) {
	a, err := New(Options{Token: testToken})
	require.NoError(t, err)
	require.NoError(t, a.clean(nil))
	require.Equal(t, "get https://x/bot***/getMe", a.clean(errors.New("get https://x/bot"+testToken+"/getMe")).Error())
}
