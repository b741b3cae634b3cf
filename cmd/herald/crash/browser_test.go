//go:build failpoint

package crash

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"time"
)

// browser talks in the browser chat over HTTP. It sends a message again, with the same id, until Herald
// says that it has it: as the page does when the connection breaks.
type browser struct {
	w      *world
	chat   string
	client *http.Client
}

func (w *world) newBrowser(chat string) *browser {
	return &browser{w: w, chat: chat, client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}}
}

func (b *browser) url() string { return b.w.web + "/api/chat/chats/" + b.chat + "/messages" }

type browserMessage struct {
	From string `json:"from"`
	Text string `json:"text"`
}

// messages returns the history.
func (b *browser) messages() ([]browserMessage, error) {
	resp, err := b.client.Get(b.url())
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	var out struct {
		Messages []browserMessage `json:"messages"`
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("history: %s", resp.Status)
	}
	return out.Messages, json.NewDecoder(resp.Body).Decode(&out)
}

// talk asks and waits for the answer.
func (b *browser) talk(k kind) {
	a := b.w.newAsk(place{}, k, "%s "+string(k), "")
	body, _ := json.Marshal(map[string]string{"id": "message-" + a.token, "text": a.text})
	b.w.until("the browser's message is accepted", replyLimit, func() bool {
		req, err := http.NewRequest(http.MethodPost, b.url(), bytes.NewReader(body))
		if err != nil {
			return false
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Origin", b.w.web)
		resp, err := b.client.Do(req)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	b.w.until("the browser shows the answer to "+a.token, replyLimit, func() bool {
		asked, answered, excused := b.look(a.token)
		return asked == 1 && (answered == 1 || excused)
	})
}

// look counts a question, its answers and whether a reason stands behind it.
func (b *browser) look(token string) (asked, answered int, excused bool) {
	list, err := b.messages()
	if err != nil {
		return 0, 0, false
	}
	for _, m := range list {
		switch {
		case m.From == "user" && slices.Contains(tokens(question, m.Text), token):
			asked++
		case m.From != "user" && slices.Contains(tokens(marker, m.Text), token):
			answered++
		case m.From != "user" && asked > 0 && reason.MatchString(m.Text):
			excused = true
		}
	}
	return asked, answered, excused
}

// check asserts that each question and each answer is there once (P1, P2, P4).
func (b *browser) check() {
	for _, a := range b.w.Asks() {
		if a.message != 0 {
			continue
		}
		asked, answered, excused := b.look(a.token)
		if asked != 1 || answered > 1 || answered == 0 && !excused {
			b.w.fail("P1, P4: the browser shows question %s %d times and its answer %d times (a reason: %v)", a.token, asked, answered, excused)
		}
	}
}
