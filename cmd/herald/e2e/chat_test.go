package e2e_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/stretchr/testify/require"
)

// said is one message of the browser chat, as its HTTP interface tells it.
type said struct {
	Seq     int64  `json:"seq"`
	From    string `json:"from"`
	Text    string `json:"text"`
	Interim bool   `json:"interim"`
	Files   []struct {
		Name string `json:"name"`
		URL  string `json:"url"`
	} `json:"files"`
}

// post writes a message into a chat as the page does, and returns the status and the body.
func (d *daemon) post(chat, id, text string) (int, string) {
	d.t.Helper()
	body, err := json.Marshal(map[string]string{"id": id, "text": text})
	require.NoError(d.t, err)
	resp, err := http.Post(d.address()+"api/chat/chats/"+chat+"/messages", "application/json", bytes.NewReader(body))
	require.NoError(d.t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	require.NoError(d.t, err)
	return resp.StatusCode, string(answer)
}

// say posts a message that must be taken.
func (d *daemon) say(chat, id, text string) {
	d.t.Helper()
	status, body := d.post(chat, id, text)
	require.Equal(d.t, http.StatusOK, status, body)
}

// history returns a chat's messages, oldest first.
func (d *daemon) history(chat string) []said {
	d.t.Helper()
	status, body := d.get("/api/chat/chats/" + chat + "/messages")
	require.Equal(d.t, http.StatusOK, status, body)
	var page struct {
		Messages []said `json:"messages"`
	}
	require.NoError(d.t, json.Unmarshal([]byte(body), &page))
	return page.Messages
}

// await waits until the agent has said something in a chat that contains part, and returns it.
func (d *daemon) await(chat, part string) said {
	d.t.Helper()
	var found said
	d.until(fmt.Sprintf("chat %s shows %q", chat, part), func() bool {
		for _, m := range d.history(chat) {
			if m.From == "agent" && !m.Interim && strings.Contains(m.Text, part) {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

// refused makes a request that another site's page would make: the daemon refuses it, and logs that.
func (d *daemon) refused() {
	d.t.Helper()
	req, err := http.NewRequest(http.MethodGet, d.address()+"api/chat/chats", nil)
	require.NoError(d.t, err)
	req.Header.Set("Origin", "http://elsewhere.example")
	resp, err := http.DefaultClient.Do(req)
	require.NoError(d.t, err)
	_ = resp.Body.Close()
	require.Equal(d.t, http.StatusForbidden, resp.StatusCode)
}
