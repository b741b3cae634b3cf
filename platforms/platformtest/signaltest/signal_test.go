package signaltest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
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

const (
	ann   = "+15550000002"
	annID = "00000000-0000-4000-8000-000000000002"
)

func start(t *testing.T, o Options) (*Server, string) {
	s := New(o)
	url, err := s.Start()
	require.NoError(t, err)
	t.Cleanup(s.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	s.AddPerson(Person{Number: ann, UUID: annID, Name: "Ann"})
	return s, url
}

func do(t *testing.T, method, url, body string) (status int, header http.Header, text string) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, resp.Header, strings.TrimSpace(string(b))
}

// What was recorded from signal-cli 0.13.19 in multi-account mode without an account.
func TestServer_AnswersAsTheRealDaemonDoes(t *testing.T) {
	s, url := start(t, Options{Multi: true, Unlinked: true})
	for _, c := range []struct{ name, method, path, body, want string }{
		{"version", "POST", "/api/v1/rpc", `{"jsonrpc":"2.0","method":"version","id":"1"}`, `{"jsonrpc":"2.0","result":{"version":"0.13.19"},"id":"1"}`},
		{"accounts", "POST", "/api/v1/rpc", `{"jsonrpc":"2.0","method":"listAccounts","id":"2"}`, `{"jsonrpc":"2.0","result":[],"id":"2"}`},
		{"unknown account", "POST", "/api/v1/rpc", `{"jsonrpc":"2.0","method":"send","params":{"account":"+15550100","recipient":["+15550101"],"message":"hi"},"id":"3"}`,
			`{"jsonrpc":"2.0","error":{"code":-32602,"message":"Specified account does not exist","data":null},"id":"3"}`},
		{"no account", "POST", "/api/v1/rpc", `{"jsonrpc":"2.0","method":"send","params":{"recipient":["+15550101"],"message":"hi"},"id":"4"}`,
			`{"jsonrpc":"2.0","error":{"code":-32602,"message":"Method requires valid account parameter","data":null},"id":"4"}`},
		{"unknown method", "POST", "/api/v1/rpc", `{"jsonrpc":"2.0","method":"nonsense","id":"5"}`,
			`{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not implemented","data":null},"id":"5"}`},
		{"batch", "POST", "/api/v1/rpc", `[{"jsonrpc":"2.0","method":"version","id":"a"},{"jsonrpc":"2.0","method":"nonsense","id":"b"}]`,
			`[{"jsonrpc":"2.0","result":{"version":"0.13.19"},"id":"a"},{"jsonrpc":"2.0","error":{"code":-32601,"message":"Method not implemented","data":null},"id":"b"}]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			status, header, text := do(t, c.method, url+c.path, c.body)
			require.Equal(t, 200, status)
			require.Equal(t, "application/json", header.Get("Content-Type"))
			require.Equal(t, c.want, text)
		})
	}
	status, _, text := do(t, "GET", url+"/api/v1/check", "")
	require.Equal(t, 200, status)
	require.Empty(t, text)
	status, _, text = do(t, "POST", url+"/api/v1/rpc", "{not json")
	require.Equal(t, 200, status)
	require.Contains(t, text, `"code":-32700`)
	require.Contains(t, text, `"data":null},"id":null}`)
	status, _, text = do(t, "GET", url+"/api/v1/rpc", "")
	require.Equal(t, 405, status)
	require.Empty(t, text)
	status, _, text = do(t, "GET", url+"/api/v1/events?account=%2B15550100", "")
	require.Equal(t, 400, status)
	require.Empty(t, text)
	status, header, text := do(t, "GET", url+"/v1/about", "")
	require.Equal(t, 404, status)
	require.Equal(t, "text/html", header.Get("Content-Type"))
	require.Equal(t, "<h1>404 Not Found</h1>No context found for request", text)
	s.Offline(true)
	_, _, text = do(t, "POST", url+"/api/v1/rpc", `{"jsonrpc":"2.0","method":"startLink","id":"6"}`)
	require.Equal(t, `{"jsonrpc":"2.0","error":{"code":-3,"message":"Link request error: Connection closed!","data":null},"id":"6"}`, text)
}

func TestServer_StreamsCommentsAndEvents(t *testing.T) {
	s, url := start(t, Options{Comments: time.Millisecond})
	resp, err := http.Get(url + "/api/v1/events?account=%2B15550000001")
	require.NoError(t, err)
	defer resp.Body.Close()
	require.Equal(t, "text/event-stream", resp.Header.Get("Content-Type"))
	lines := bufio.NewScanner(resp.Body)
	require.True(t, lines.Scan())
	require.Equal(t, ":", lines.Text())
	at := s.Write(Post{From: ann, Text: "hello"})
	for lines.Scan() && lines.Text() != "event:receive" {
	}
	require.True(t, lines.Scan())
	data, ok := strings.CutPrefix(lines.Text(), "data:")
	require.True(t, ok)
	var got struct {
		Account  string
		Envelope struct {
			Source, SourceNumber, SourceUUID, SourceName string
			SourceDevice                                 int
			Timestamp                                    int64
			DataMessage                                  struct {
				Timestamp int64
				Message   string
			}
		}
	}
	require.NoError(t, json.Unmarshal([]byte(data), &got))
	require.Equal(t, "+15550000001", got.Account)
	require.Equal(t, ann, got.Envelope.SourceNumber)
	require.Equal(t, annID, got.Envelope.SourceUUID)
	require.Equal(t, at, got.Envelope.DataMessage.Timestamp)
	require.Equal(t, "hello", got.Envelope.DataMessage.Message)
	require.Eventually(t, func() bool { return s.Pending() == 0 }, 5*time.Second, time.Millisecond)
}

func TestServer_ReplaysAfterLastEventID(t *testing.T) {
	s, url := start(t, Options{Comments: time.Millisecond, Numbered: true})
	for _, text := range []string{"one", "two", "three"} {
		s.Write(Post{From: ann, Text: text})
	}
	read := func(last string, n int) (ids []string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"/api/v1/events", nil)
		require.NoError(t, err)
		if last != "" {
			req.Header.Set("Last-Event-ID", last)
		}
		resp, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		defer resp.Body.Close()
		for lines := bufio.NewScanner(resp.Body); len(ids) < n && lines.Scan(); {
			if id, ok := strings.CutPrefix(lines.Text(), "id:"); ok {
				ids = append(ids, id)
			}
		}
		return ids
	}
	ids := read("", 3)
	require.Len(t, ids, 3)
	require.Equal(t, ids[1:], read(ids[0], 2))
	require.Equal(t, ids, read("of an earlier run", 3))
}

func TestServer_ChecksWhatItIsGiven(t *testing.T) {
	s, url := start(t, Options{})
	group := s.AddGroup("Team", ann)
	path := filepath.Join(t.TempDir(), "note.txt")
	require.NoError(t, os.WriteFile(path, []byte("inside"), 0o600))
	send := func(params map[string]any) string {
		body, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "send", "id": 1, "params": params})
		require.NoError(t, err)
		_, _, text := do(t, "POST", url+"/api/v1/rpc", string(body))
		return text
	}
	for _, c := range []struct {
		name   string
		params map[string]any
		want   string
	}{
		{"to nobody", map[string]any{"message": "x"}, "No recipients given"},
		{"empty", map[string]any{"recipient": ann}, "Sending empty message is not allowed"},
		{"a stranger", map[string]any{"recipient": []string{"+19990000000"}, "message": "x"}, "UNREGISTERED_FAILURE"},
		{"an unknown group", map[string]any{"groupId": "AAAA", "message": "x"}, "Group not found"},
		{"a style past the end", map[string]any{"recipient": ann, "message": "abc", "textStyle": "1:3:BOLD"}, "Invalid textStyle range"},
		{"a style in a pair", map[string]any{"recipient": ann, "message": "😀", "textStyle": "1:1:BOLD"}, "cuts a surrogate pair"},
		{"an unknown style", map[string]any{"recipient": ann, "message": "abc", "textStyles": []string{"0:1:BOLD", "1:1:LOUD"}}, "Invalid style: LOUD"},
		{"too long", map[string]any{"recipient": ann, "message": strings.Repeat("😀", 4001)}, "too long"},
		{"a missing file", map[string]any{"recipient": ann, "attachments": []string{"/nowhere/x"}}, "AttachmentInvalidException"},
		{"styles", map[string]any{"recipient": annID, "message": "😀 bold", "textStyles": []string{"3:4:BOLD", "0:2:ITALIC"}}, `"type":"SUCCESS"`},
		{"files", map[string]any{"groupId": group, "message": "see", "attachments": []string{path, "data:image/png;filename=a.png;base64,aGk="}}, `"type":"SUCCESS"`},
		{"a quote", map[string]any{"recipient": ann, "message": "re", "quoteTimestamp": 5, "quoteAuthor": ann, "quoteMessage": "what"}, `"type":"SUCCESS"`},
	} {
		t.Run(c.name, func(t *testing.T) { require.Contains(t, send(c.params), c.want) })
	}
	mine := s.Visible(ann)
	require.Len(t, mine, 2)
	require.Equal(t, []Style{{3, 4, "BOLD"}, {0, 2, "ITALIC"}}, mine[0].Styles)
	require.Equal(t, &Quote{5, annID, "what"}, mine[1].Quote)
	ours := s.Visible(group)
	require.Len(t, ours, 1)
	require.Equal(t, []File{{"note.txt", "text/plain; charset=utf-8", []byte("inside")}, {"a.png", "image/png", []byte("hi")}}, ours[0].Files)
}

func TestServer_LinksADevice(t *testing.T) {
	s, url := start(t, Options{Multi: true, Unlinked: true})
	_, _, text := do(t, "POST", url+"/api/v1/rpc", `{"jsonrpc":"2.0","method":"startLink","id":1}`)
	var link struct {
		Result struct{ DeviceLinkURI string }
	}
	require.NoError(t, json.Unmarshal([]byte(text), &link))
	require.Contains(t, link.Result.DeviceLinkURI, "sgnl://linkdevice?uuid=")
	answered := make(chan string, 1)
	go func() {
		body, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "method": "finishLink", "id": 2, "params": map[string]any{"deviceLinkUri": link.Result.DeviceLinkURI, "deviceName": "Herald"}})
		resp, err := http.Post(url+"/api/v1/rpc", "application/json", strings.NewReader(string(body)))
		if err != nil {
			answered <- err.Error()
			return
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		answered <- string(b)
	}()
	require.Eventually(t, func() bool {
		device, ok := s.Scan(link.Result.DeviceLinkURI)
		return ok && device == "Herald"
	}, 5*time.Second, time.Millisecond)
	require.Contains(t, <-answered, `"result":{"number":"+15550000001"}`)
	_, _, text = do(t, "POST", url+"/api/v1/rpc", `{"jsonrpc":"2.0","method":"listAccounts","id":3}`)
	require.Contains(t, text, `[{"number":"+15550000001"}]`)
}
