package telegramtest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"herald/platforms/platformtest/faults"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(faults.Needed(Routes, ForOthers...)))
}

// reply is a Bot API answer.
type reply struct {
	OK          bool            `json:"ok"`
	Code        int             `json:"error_code"`
	Description string          `json:"description"`
	Result      json.RawMessage `json:"result"`
	Parameters  struct {
		RetryAfter int   `json:"retry_after"`
		MigrateTo  int64 `json:"migrate_to_chat_id"`
	} `json:"parameters"`
}

// client is a bot that knows nothing but HTTP.
type client struct {
	t    *testing.T
	base string
	http *http.Client
}

func newFake(t *testing.T, o Options) (*Server, *client) {
	t.Helper()
	fake := New(o)
	base, err := fake.Start()
	require.NoError(t, err)
	c := &client{t: t, base: base, http: &http.Client{Transport: &http.Transport{}}}
	t.Cleanup(func() {
		c.http.CloseIdleConnections()
		fake.Close()
	})
	return fake, c
}

func (c *client) call(method string, params map[string]any) reply {
	c.t.Helper()
	r, err := c.try(c.t.Context(), method, params)
	require.NoError(c.t, err)
	return r
}

func (c *client) try(ctx context.Context, method string, params map[string]any) (reply, error) {
	body, _ := json.Marshal(params)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.base+"/bot4242:x/"+method, bytes.NewReader(body))
	if err != nil {
		return reply{}, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return reply{}, err
	}
	defer resp.Body.Close()
	var r reply
	return r, json.NewDecoder(resp.Body).Decode(&r)
}

func (c *client) updates(params map[string]any) []int64 {
	c.t.Helper()
	r := c.call("getUpdates", params)
	require.True(c.t, r.OK, r.Description)
	var list []struct {
		ID int64 `json:"update_id"`
	}
	require.NoError(c.t, json.Unmarshal(r.Result, &list))
	var ids []int64
	for _, u := range list {
		ids = append(ids, u.ID)
	}
	return ids
}

// What an offset confirms, and that only it does (https://core.telegram.org/bots/api#getupdates).
func TestTelegram_GetUpdates(t *testing.T) {
	fake, c := newFake(t, Options{})
	for i := range 4 {
		fake.Say(5, fmt.Sprint(i))
	}
	ids := c.updates(map[string]any{})
	require.Len(t, ids, 4)
	require.Equal(t, ids, c.updates(map[string]any{"offset": 0}), "without an offset nothing is confirmed")
	require.Equal(t, ids[:2], c.updates(map[string]any{"limit": 2}))
	require.Equal(t, ids[1:], c.updates(map[string]any{"offset": ids[1]}))
	require.Equal(t, 3, fake.Pending())
	require.Equal(t, ids[1:], c.updates(map[string]any{"offset": ids[0]}), "confirmed is gone for good")
	require.Equal(t, ids[3:], c.updates(map[string]any{"offset": -1}), "counted from the end")
	require.Empty(t, c.updates(map[string]any{"offset": ids[3] + 1}))
	fake.Replay(2)
	require.Equal(t, ids[3:], c.updates(map[string]any{})[1:])

	// A long poll ends with the first update, and other kinds are dropped.
	c.updates(map[string]any{"offset": 1 << 40})
	got := make(chan []int64, 1)
	go func() { got <- c.updates(map[string]any{"timeout": 20, "allowed_updates": []string{"message"}}) }()
	waitFor(t, func() bool { now, _, _ := fake.Polls(); return now == 1 })
	fake.React(5, 1, "", "👍", User{})
	fake.Say(5, "wake")
	require.Len(t, <-got, 1)
	require.Equal(t, 1, fake.Pending())
}

func waitFor(t *testing.T, cond func() bool) {
	t.Helper()
	require.Eventually(t, cond, 10*time.Second, time.Millisecond)
}

// A second poll ends the first with 409, and a webhook forbids polling.
func TestTelegram_Conflicts(t *testing.T) {
	fake, c := newFake(t, Options{})
	first := make(chan reply, 1)
	go func() {
		r, _ := c.try(t.Context(), "getUpdates", map[string]any{"timeout": 20})
		first <- r
	}()
	waitFor(t, func() bool { now, _, _ := fake.Polls(); return now == 1 })
	c.updates(map[string]any{})
	r := <-first
	require.Equal(t, 409, r.Code)
	require.Equal(t, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running", r.Description)
	_, most, conflicts := fake.Polls()
	require.Equal(t, 2, most)
	require.Equal(t, 1, conflicts)

	require.True(t, c.call("setWebhook", map[string]any{"url": "http://127.0.0.1:1/"}).OK)
	require.Contains(t, c.call("getUpdates", nil).Description, "can't use getUpdates method while webhook is active")
	fake.Say(5, "keep me")
	require.True(t, c.call("deleteWebhook", nil).OK)
	require.Len(t, c.updates(nil), 1)
	require.True(t, c.call("deleteWebhook", map[string]any{"drop_pending_updates": true}).OK)
	require.Empty(t, c.updates(nil))
}

// The service's own words for bad markup.
func TestTelegram_HTML(t *testing.T) {
	_, c := newFake(t, Options{})
	_, c2 := newFake(t, Options{Token: "other"})
	require.Equal(t, "Unauthorized", c2.call("getMe", nil).Description)
	for _, x := range []struct{ in, text, refusal string }{
		{"plain &lt;b&gt; &amp;amp; &quot;q&quot; &#128512; &nope; &", `plain <b> &amp; "q" 😀 &nope; &`, ""},
		{"<b>b <i>i</i></b><code class=\"language-go\">x</code>", "b ix", ""},
		{"<span class=\"tg-spoiler\">s</span><blockquote expandable>q</blockquote>", "sq", ""},
		{"a < b", "", "Unclosed start tag at byte offset 2"},
		{"<b>open", "", "Can't find end tag corresponding to start tag \"b\""},
		{"<b>x</i>", "", `Unmatched end tag at byte offset 4, expected "</b>", found "</i>"`},
		{"x</b>", "", "Unexpected end tag at byte offset 1"},
		{"<h1>x</h1>", "", `Unsupported start tag "h1" at byte offset 0`},
		{"<span>x</span>", "", `Tag "span" must have class "tg-spoiler" at byte offset 0`},
		{"<a href>x</a>", "", `Expected equal sign in declaration of an attribute of the tag "a" at byte offset 0`},
		{"<b>x</b", "", "Unclosed end tag at byte offset 4"},
	} {
		fake, bot := newFake(t, Options{})
		fake.AddChat(Chat{ID: 5})
		r := bot.call("sendMessage", map[string]any{"chat_id": 5, "text": x.in, "parse_mode": "HTML"})
		if x.refusal != "" {
			require.Equal(t, "Bad Request: can't parse entities: "+x.refusal, r.Description, x.in)
			continue
		}
		require.True(t, r.OK, "%s: %s", x.in, r.Description)
		require.Equal(t, x.text, fake.Visible(5)[0].Text)
	}
	require.Equal(t, "Bad Request: chat not found", c.call("sendMessage", map[string]any{"chat_id": 5, "text": "x"}).Description)
}

func TestTelegram_Refusals(t *testing.T) {
	fake, c := newFake(t, Options{MaxDownload: 4})
	fake.AddChat(Chat{ID: 5})
	fake.AddChat(Chat{ID: -6, IsForum: true})
	fake.Upgrade(-7, -8)
	mine := fake.Say(5, "mine")
	var sent struct {
		ID int `json:"message_id"`
	}
	require.NoError(t, json.Unmarshal(c.call("sendMessage", map[string]any{"chat_id": 5, "text": "a"}).Result, &sent))
	for _, x := range []struct {
		method string
		params map[string]any
		want   string
	}{
		{"sendMessage", map[string]any{"chat_id": 5, "text": " "}, "Bad Request: message text is empty"},
		{"sendMessage", map[string]any{"chat_id": 5, "text": strings.Repeat("😀", 2049)}, "Bad Request: message is too long"},
		{"sendMessage", map[string]any{"chat_id": -6, "text": "x", "message_thread_id": 99}, "Bad Request: message thread not found"},
		{"sendMessage", map[string]any{"chat_id": -7, "text": "x"}, "Bad Request: group chat was upgraded to a supergroup chat"},
		{"sendMessage", map[string]any{"chat_id": 5, "text": "x", "reply_parameters": map[string]any{"message_id": 1}}, "Bad Request: message to be replied not found"},
		{"sendMessage", map[string]any{"chat_id": 5, "text": "x", "reply_markup": map[string]any{"inline_keyboard": [][]any{{map[string]any{"text": "b", "callback_data": strings.Repeat("x", 65)}}}}}, "Bad Request: BUTTON_DATA_INVALID"},
		{"editMessageText", map[string]any{"chat_id": 5, "message_id": sent.ID, "text": "a"}, "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"},
		{"editMessageText", map[string]any{"chat_id": 5, "message_id": 1, "text": "a"}, "Bad Request: message to edit not found"},
		{"editMessageText", map[string]any{"chat_id": 5, "message_id": mine, "text": "a"}, "Bad Request: message can't be edited"},
		{"deleteMessage", map[string]any{"chat_id": 5, "message_id": 1}, "Bad Request: message to delete not found"},
		{"setMessageReaction", map[string]any{"chat_id": 5, "message_id": sent.ID, "reaction": []any{map[string]any{"type": "emoji", "emoji": "🦖"}}}, "Bad Request: REACTION_INVALID"},
		{"answerCallbackQuery", map[string]any{"callback_query_id": "1"}, "Bad Request: query is too old and response timeout expired or query ID is invalid"},
		{"setMyCommands", map[string]any{"commands": []any{map[string]any{"command": "A", "description": "x"}}}, "Bad Request: BOT_COMMAND_INVALID"},
		{"getFile", map[string]any{"file_id": "x"}, "Bad Request: wrong file_id or the file is temporarily unavailable"},
		{"noSuchMethod", nil, "Not Found: method not found"},
	} {
		r := c.call(x.method, x.params)
		require.False(t, r.OK)
		require.Equal(t, x.want, r.Description, "%s %v", x.method, x.params)
	}
	require.Equal(t, int64(-8), c.call("sendMessage", map[string]any{"chat_id": -7, "text": "x"}).Parameters.MigrateTo)
	fake.Write(Post{Chat: 5, Files: []File{{Kind: "document", Name: "a", Body: []byte("12345")}}})
	require.Equal(t, "Bad Request: file is too big", c.call("getFile", map[string]any{"file_id": "file-1"}).Description)
	fake.Block(5, "bot was blocked by the user")
	r := c.call("sendMessage", map[string]any{"chat_id": 5, "text": "x"})
	require.Equal(t, 403, r.Code)
	require.Equal(t, "Forbidden: bot was blocked by the user", r.Description)
}

// P8: a request inside a window is refused and remembered.
func TestTelegram_RemembersImpoliteness(t *testing.T) {
	fake, c := newFake(t, Options{})
	fake.AddChat(Chat{ID: 5})
	fake.AddChat(Chat{ID: 6})
	fake.Break(Fault{Trouble: AnswerStatus, Status: 429, RetryAfter: time.Minute})
	r := c.call("sendMessage", map[string]any{"chat_id": 5, "text": "x"})
	require.Equal(t, 60, r.Parameters.RetryAfter)
	require.Empty(t, fake.Violations())
	require.True(t, c.call("sendMessage", map[string]any{"chat_id": 6, "text": "x"}).OK)
	require.Equal(t, 429, c.call("sendChatAction", map[string]any{"chat_id": 5, "action": "typing"}).Code)
	require.Len(t, fake.Violations(), 1)
	require.Contains(t, fake.Violations()[0], "sendchataction for chat 5")
}

// What a trouble does and what the client sees.
func TestTelegram_Troubles(t *testing.T) {
	for trouble, acted := range map[Trouble]bool{ResetBefore: false, ResetAfter: true, HangBefore: false, HangAfter: true, HalfBody: true,
		Garbage: false} {
		t.Run(string(trouble), func(t *testing.T) {
			fake, c := newFake(t, Options{})
			fake.AddChat(Chat{ID: 5})
			fake.Break(Fault{Trouble: trouble})
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			defer cancel()
			_, err := c.try(ctx, "sendMessage", map[string]any{"chat_id": 5, "text": "x"})
			require.Error(t, err)
			require.Equal(t, acted, len(fake.Visible(5)) == 1)
			require.True(t, c.call("sendMessage", map[string]any{"chat_id": 5, "text": "y"}).OK, "once is once")
		})
	}
}

// Every encoding of parameters that clients use.
func TestTelegram_Encodings(t *testing.T) {
	fake, c := newFake(t, Options{})
	fake.AddChat(Chat{ID: 5})
	url5 := c.base + "/bot1:x/sendMessage"
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	require.NoError(t, w.WriteField("chat_id", "5"))
	require.NoError(t, w.WriteField("text", "multipart"))
	require.NoError(t, w.Close())
	whole := form.Bytes()
	for _, x := range []struct {
		kind string
		body []byte
		ok   bool
	}{
		{"application/x-www-form-urlencoded", []byte(url.Values{"chat_id": {"5"}, "text": {"form"}}.Encode()), true},
		{"application/json", []byte(`{"chat_id":"5","text":"json"}`), true},
		{"application/json; charset=utf-8", []byte(`{"chat_id":5`), false},
		{w.FormDataContentType(), whole, true},
		{w.FormDataContentType(), whole[:len(whole)-20], false},
	} {
		resp, err := c.http.Post(url5, x.kind, bytes.NewReader(x.body))
		require.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		resp.Body.Close()
		require.Equal(t, x.ok, resp.StatusCode == 200, "%s: %s", x.kind, body)
	}
	resp, err := c.http.Get(url5 + "?chat_id=5&text=query")
	require.NoError(t, err)
	resp.Body.Close()
	require.Equal(t, 200, resp.StatusCode)
	require.Len(t, fake.Visible(5), 4)
}

func TestTelegram_Serve(t *testing.T) {
	fake := New(Options{Token: "77:x", Keep: 2})
	require.Equal(t, int64(77), fake.BotID())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- fake.Serve(ctx, "127.0.0.1:0") }()
	for range 10 {
		fake.Say(5, "x")
	}
	require.LessOrEqual(t, len(fake.Acts(5)), 4, "a soak run does not grow")
	cancel()
	require.NoError(t, <-ended)
	require.Error(t, New(Options{}).Serve(t.Context(), "256.0.0.1:1"))
}
