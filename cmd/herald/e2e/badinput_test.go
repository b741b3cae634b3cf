package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms/platformtest/telegramtest"
	"herald/tools/needtest"
)

// configExit is the code of a start that would fail again.
const configExit = 78

// settings writes config.yaml into the place's home.
func (p *place) settings(text string) {
	p.t.Helper()
	require.NoError(p.t, os.MkdirAll(p.home, 0o700))
	require.NoError(p.t, os.WriteFile(filepath.Join(p.home, "config.yaml"), []byte(text), 0o600))
}

func TestBad_UnknownKeyIsAWarningWithTheNearestOne(t *testing.T) {
	p := newPlace(t)
	p.settings("http:\n  lisen: 127.0.0.1:0\n")
	require.Contains(t, p.good("config", "check"), "http.listen")
	d := p.run()
	require.Contains(t, d.log(), "http.lisen")
	require.Contains(t, d.log(), "http.listen", "did you mean")
	d.stop()
}

// A start that can't succeed says which setting is wrong, what it holds and what is allowed, and its exit code
// tells a supervisor not to try again.
func TestBad_SettingsEndTheStart(t *testing.T) {
	for name, c := range map[string]struct {
		yaml string
		env  []string
		args []string
		want []string
	}{
		"wrong type":   {yaml: "agent:\n  max_turns: many\n", want: []string{"agent.max_turns", "many", "config.yaml"}},
		"out of range": {yaml: "agent:\n  max_turns: -4\n", want: []string{"agent.max_turns", "-4"}},
		"not one of":   {yaml: "display:\n  busy_input_mode: shout\n", want: []string{"display.busy_input_mode", "shout", "interrupt"}},
		"no yaml":      {yaml: "http: [\n", want: []string{"config.yaml:1"}},
		"bad variable": {env: []string{"HERALD_HTTP_LISTEN=nowhere"}, want: []string{"HERALD_HTTP_LISTEN", "nowhere"}},
		"bad flag":     {args: []string{"--set", "http.listen"}, want: []string{"key=value"}},
		"bad profile":  {args: []string{"--profile", "../x"}, want: []string{"profile", "a-z"}},
		"open door":    {args: []string{"--set", "http.listen=0.0.0.0:0"}, want: []string{"password", "0.0.0.0"}},
		"short token":  {env: []string{"TELEGRAM_BOT_TOKEN=abc"}, want: []string{"TELEGRAM_BOT_TOKEN", "shorter"}},
		"no token":     {env: []string{"HERALD_PLATFORMS_TELEGRAM_ENABLED=true"}, want: []string{"TELEGRAM_BOT_TOKEN", "no token"}},
		"no secret": {env: []string{"TELEGRAM_BOT_TOKEN=" + botToken, "TELEGRAM_WEBHOOK_URL=https://bot.example.com/hook"},
			want: []string{"TELEGRAM_WEBHOOK_SECRET", "anyone could send updates"}},
		"provider no key": {args: []string{"--set", "model.provider=openai"}, want: []string{"OPENAI_API_KEY"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.env = append(p.env, c.env...)
			if c.yaml != "" {
				p.settings(c.yaml)
			}
			// --set of http.listen by begin would hide what is tested here.
			r := p.herald(append([]string{"run"}, c.args...)...)
			require.Equal(t, configExit, r.code, r.err)
			for _, want := range c.want {
				require.Contains(t, r.err, want)
			}
			require.NotContains(t, r.err, "goroutine", "no crash")
		})
	}
}

func TestBad_EnvFile(t *testing.T) {
	p := newPlace(t)
	p.settings("")
	env := filepath.Join(p.home, ".env")
	require.NoError(t, os.WriteFile(env, []byte("OPENAI_API_KEY=sk-0123456789abcdef\n"), 0o600))
	require.NoError(t, os.Chmod(env, 0o644))
	r := p.herald("run")
	require.Equal(t, configExit, r.code)
	require.Contains(t, r.err, "chmod 600")
	require.NotContains(t, r.err, "sk-0123456789abcdef")
	require.NoError(t, os.WriteFile(env, []byte("this is no variable\n"), 0o600))
	require.NoError(t, os.Chmod(env, 0o600))
	r = p.herald("config", "check")
	require.Contains(t, r.out+r.err, "line 1")
}

// nobody returns a user without rights, to run the binary as. The tests of a user who is not root need none.
func nobody(t *testing.T) *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	u, err := user.Lookup("nobody")
	if err != nil {
		needtest.Lacking(t, "this machine has no user nobody")
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	require.NoError(t, err)
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	require.NoError(t, err)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func TestBad_Home(t *testing.T) {
	t.Run("IsAFile", func(t *testing.T) {
		p := newPlace(t)
		require.NoError(t, os.WriteFile(p.home, []byte("x"), 0o600))
		r := p.herald("run")
		require.Equal(t, configExit, r.code)
		require.Contains(t, r.err, p.home)
		require.Contains(t, r.err, "HERALD_HOME")
	})
	for name, mode := range map[string]os.FileMode{"CantBeRead": 0o300, "CantBeWritten": 0o500} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.user = nobody(t)
			root, err := os.MkdirTemp("", "herald-home-")
			require.NoError(t, err)
			t.Cleanup(func() { _ = os.RemoveAll(root) })
			require.NoError(t, os.Chmod(root, 0o755))
			p.home = filepath.Join(root, "home")
			p.env = append(p.env, "HERALD_HOME="+p.home, "HOME="+root)
			require.NoError(t, os.Mkdir(p.home, 0o700))
			if p.user != nil {
				require.NoError(t, os.Chown(p.home, int(p.user.Uid), int(p.user.Gid)))
			}
			require.NoError(t, os.Chmod(p.home, mode))
			t.Cleanup(func() { _ = os.Chmod(p.home, 0o700) })
			r := p.herald("run")
			require.Equal(t, configExit, r.code, r.err)
			require.Contains(t, r.err, "permission denied")
			require.Contains(t, r.err, fmt.Sprintf("mode %04o", mode))
			require.Contains(t, r.err, "chmod u+rwx")
		})
	}
}

// P11: a damaged database is kept as it is, a copy is made once, and the message says what to do.
func TestBad_CorruptDatabase(t *testing.T) {
	p := newPlace(t)
	d := p.run()
	d.say("kitchen-1", "message-1", "echo buy milk")
	d.await("kitchen-1", "buy milk")
	d.stop()
	db := filepath.Join(p.home, "herald.db")
	data, err := os.ReadFile(db)
	require.NoError(t, err)
	for i := range data[:1024] {
		data[i] ^= 0x5a
	}
	require.NoError(t, os.WriteFile(db, data, 0o600))
	for range 2 {
		r := p.herald("run")
		require.Equal(t, configExit, r.code, r.err)
		require.Contains(t, r.err, "is damaged")
		require.Contains(t, r.err, "herald doctor db")
	}
	now, err := os.ReadFile(db)
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, now), "the file is kept as it is")
	copies, err := filepath.Glob(db + ".corrupt-*")
	require.NoError(t, err)
	require.Len(t, copies, 1, "a restart makes no second copy")
	kept, err := os.ReadFile(copies[0])
	require.NoError(t, err)
	require.True(t, bytes.Equal(data, kept))
	r := p.herald("doctor", "db")
	require.Equal(t, configExit, r.code)
	require.Contains(t, r.out, copies[0])
	require.Contains(t, r.out, ".recover")
	require.Contains(t, r.err, "damaged")
}

func TestBad_SecondDaemonOfAHome(t *testing.T) {
	p := newPlace(t)
	d := p.run()
	r := p.herald("run", "--set", "http.listen=127.0.0.1:0")
	require.Equal(t, configExit, r.code)
	require.Contains(t, r.err, strconv.Itoa(d.cmd.Process.Pid), "it names the process that has the home")
	d.say("kitchen-1", "message-1", "hello")
	d.await("kitchen-1", "Hello!")
	require.Contains(t, p.good("status"), "ready", "the first daemon goes on")
}

// ready is what /readyz tells.
type ready struct {
	Ready    bool     `json:"ready"`
	State    string   `json:"state"`
	Problems []string `json:"problems"`
	Accounts []struct {
		Account string `json:"account"`
		Ready   bool   `json:"ready"`
		State   string `json:"state"`
		Detail  string `json:"detail"`
	} `json:"accounts"`
}

func (d *daemon) ready() (int, ready) {
	d.t.Helper()
	status, body := d.get("/readyz")
	var r ready
	require.NoError(d.t, json.Unmarshal([]byte(body), &r), body)
	require.Equal(d.t, r.Ready, status == http.StatusOK, "P12: the status and the body say the same")
	return status, r
}

// account returns one account of /readyz.
func (r ready) account(prefix string) string {
	for _, a := range r.Accounts {
		if strings.HasPrefix(a.Account, prefix) {
			return fmt.Sprintf("%s ready=%v %s: %s", a.Account, a.Ready, a.State, a.Detail)
		}
	}
	return ""
}

const botToken = "4242:a-token-of-the-end-to-end-tests-0"

// telegram gives the place a fake Telegram.
func (p *place) telegram() *telegramtest.Server {
	p.t.Helper()
	tg := telegramtest.New(telegramtest.Options{Token: botToken})
	base, err := tg.Start()
	require.NoError(p.t, err)
	p.t.Cleanup(tg.Close)
	p.talkTo(base)
	return tg
}

func (p *place) talkTo(base string) {
	p.env = append(p.env, "TELEGRAM_BOT_TOKEN="+botToken, "HERALD_TELEGRAM_BASE_URL="+base, "HERALD_TELEGRAM_ALLOW_FROM=*", "HERALD_TELEGRAM_RATE_LIMIT=off")
}

// bot returns how many visible messages of the bot in a chat contain part.
func bot(tg *telegramtest.Server, chat int64, part string) int {
	n := 0
	for _, m := range tg.Visible(chat) {
		if m.Bot && strings.Contains(m.Text, part) {
			n++
		}
	}
	return n
}

// A token serves one daemon at a time: the second waits, says so, and takes over when the first ends.
func TestBad_SecondDaemonOfAToken(t *testing.T) {
	first, second := newPlace(t), newPlace(t)
	tg := first.telegram()
	base := ""
	for _, kv := range first.env {
		if rest, ok := strings.CutPrefix(kv, "HERALD_TELEGRAM_BASE_URL="); ok {
			base = rest
		}
		if strings.HasPrefix(kv, "HERALD_GATEWAY_LOCK_DIR=") {
			second.env = append(second.env, kv) // one machine
		}
	}
	second.talkTo(base)
	one := first.run()
	one.until("the first is ready", func() bool { status, _ := one.ready(); return status == http.StatusOK })
	two := second.run()
	two.until("the second names who has the token", func() bool {
		_, r := two.ready()
		return strings.Contains(r.account("telegram"), "ready=false waiting") &&
			strings.Contains(r.account("telegram"), strconv.Itoa(one.cmd.Process.Pid))
	})
	r := second.herald("status")
	require.NotZero(t, r.code)
	require.Contains(t, r.out, first.home)
	require.NotContains(t, r.out+two.log(), botToken)
	status, _ := one.ready()
	require.Equal(t, http.StatusOK, status, "the first is not disturbed")
	tg.Say(7, "echo to the first")
	one.until("the first answers", func() bool { return bot(tg, 7, "to the first") == 1 })
	one.stop()
	two.until("the second takes over", func() bool { status, _ := two.ready(); return status == http.StatusOK })
	tg.Say(7, "echo to the second")
	two.until("the second answers", func() bool { return bot(tg, 7, "to the second") == 1 })
}

// An account that can't run is named with what to do; the others go on.
func TestBad_TelegramToken(t *testing.T) {
	for name, c := range map[string]struct {
		token string
		want  string
	}{
		"malformed": {"abcdefgh", "platforms.telegram.token"},
		"refused":   {"4242:another-token-that-nobody-knows-00000", "TELEGRAM_BOT_TOKEN"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlace(t)
			p.telegram()
			p.env = append(p.env, "TELEGRAM_BOT_TOKEN="+c.token)
			d := p.run()
			d.until("the account is named with the reason", func() bool {
				_, r := d.ready()
				return strings.Contains(r.account("telegram"), "ready=false") && strings.Contains(r.account("telegram"), c.want)
			})
			_, r := d.ready()
			require.Contains(t, r.account("web"), "ready=true")
			require.Contains(t, d.log(), c.want)
			require.NotContains(t, d.log(), c.token)
			d.say("kitchen-1", "message-1", "hello")
			d.await("kitchen-1", "Hello!")
			status := p.herald("status")
			require.NotZero(t, status.code)
			require.Contains(t, status.out, c.want)
		})
	}
}

func TestBad_HugeMessageInTheBrowser(t *testing.T) {
	d := newPlace(t).run()
	status, body := d.post("kitchen-1", "message-1", strings.Repeat("moth ", 6<<20))
	require.Equal(t, http.StatusRequestEntityTooLarge, status)
	require.Contains(t, body, "1 MiB")
	require.Contains(t, body, "attach it as a file", "it says what to do")
	require.Empty(t, d.history("kitchen-1"))
	d.say("kitchen-1", "message-2", "echo still here")
	d.await("kitchen-1", "still here")
}

// A file name can't lead out of the folder of uploads.
func TestBad_FileNameThatClimbs(t *testing.T) {
	d := newPlace(t).run()
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	require.NoError(t, w.WriteField("message", `{"id":"message-1","text":"echo got it"}`))
	part, err := w.CreatePart(textproto.MIMEHeader{
		"Content-Disposition": {`form-data; name="file"; filename="../../../../../../../../../../../../tmp/herald-climbed.txt"`},
		"Content-Type":        {"text/plain"},
	})
	require.NoError(t, err)
	_, _ = part.Write([]byte("I climb"))
	require.NoError(t, w.Close())
	resp, err := http.Post(d.address()+"api/chat/chats/kitchen-1/messages", w.FormDataContentType(), &form)
	require.NoError(t, err)
	_ = resp.Body.Close()
	require.Equal(t, http.StatusOK, resp.StatusCode)
	require.NoFileExists(t, "/tmp/herald-climbed.txt")
	files := d.history("kitchen-1")[0].Files
	require.Len(t, files, 1)
	require.NotContains(t, files[0].Name, "/")
	var found []string
	require.NoError(t, filepath.WalkDir(filepath.Join(d.home, "cache", "media"), func(path string, e os.DirEntry, err error) error {
		if err == nil && strings.Contains(path, "herald-climbed") {
			found = append(found, path)
		}
		return err
	}))
	require.Len(t, found, 1, "the file is in the media folder")
	status, body := d.get(strings.TrimPrefix(files[0].URL, strings.TrimSuffix(d.address(), "/")))
	require.Equal(t, http.StatusOK, status)
	require.Equal(t, "I climb", body)
}
