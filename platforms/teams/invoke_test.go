package teams

import (
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/teamstest"
)

var yesNo = [][]platforms.Button{{{Label: "Yes", Data: "y:1", Style: "primary"}, {Label: "No", Data: "n:1", Style: "danger"}}}

func (r *run) invocation(id string) teamstest.Invocation {
	r.t.Helper()
	r.until("the invoke is answered", func() bool { i, _ := r.fake.Invocation(id); return i.Done })
	i, _ := r.fake.Invocation(id)
	return i
}

// A press whose answer comes too late for its person is answered with a sign, and the word becomes a message.
func TestPress_LateWord(t *testing.T) {
	r := start(t, teamstest.Options{}, func(o *Options) { o.ClickWait = 10 * time.Millisecond })
	asked := r.mustSend(platforms.Outgoing{Address: r.atThread(), Text: text("May I?"), Buttons: yesNo})
	id, err := r.fake.Press(r.channel.ID, string(asked.Message), "Yes", teamstest.User{}, nil)
	require.NoError(t, err)
	i := r.invocation(id)
	require.Empty(t, i.Err)
	require.Equal(t, noWord, i.Text)
	e := r.events(1)[0]
	require.NoError(t, r.a.AnswerClick(t.Context(), e.Address, *e.Click, ""))
	require.Len(t, r.fake.Visible(r.thread()), 1)
	require.NoError(t, r.a.AnswerClick(t.Context(), e.Address, *e.Click, "Taken."))
	require.Equal(t, "Taken.", r.fake.Visible(r.thread())[1].Text)
}

// A private answer in a group goes into the answer of the press; when that is over it can't be private any more.
func TestPress_PrivateAnswer(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	asked := r.mustSend(platforms.Outgoing{Address: r.atGroup(), Text: text("May I?"), Buttons: yesNo})
	id, err := r.fake.Press(r.group.ID, string(asked.Message), "No", teamstest.User{}, nil)
	require.NoError(t, err)
	e := r.events(1)[0]
	r.mustSend(platforms.Outgoing{Address: e.Address, Text: text("only you"), Private: e.Click.Reply})
	require.Equal(t, "only you", r.invocation(id).Text)
	require.Len(t, r.fake.Visible(r.group.ID), 1)
	_, err = r.send(platforms.Outgoing{Address: e.Address, Text: text("only you"), Private: e.Click.Reply})
	require.Equal(t, platforms.Unsupported, sendErrorOf(t, err).Kind)
	r.mustSend(platforms.Outgoing{Address: r.atDM(), Text: text("private by itself"), Private: "x"})
	require.Len(t, r.fake.Visible(r.dm.ID), 1)
}

// P1: a press that the core can't take is not acknowledged; the person sees that and may press again.
func TestPress_Refused(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	asked := r.mustSend(platforms.Outgoing{Address: r.atDM(), Text: text("May I?"), Buttons: yesNo})
	r.sink.Fail(platforms.ErrRefused)
	id, err := r.fake.Press(r.dm.ID, string(asked.Message), "Yes", teamstest.User{}, nil)
	require.NoError(t, err)
	require.Equal(t, http.StatusServiceUnavailable, r.invocation(id).Status)
	require.False(t, r.a.Health().Inbound)
	r.sink.Fail(nil)
	_, err = r.fake.Press(r.dm.ID, string(asked.Message), "Yes", teamstest.User{}, nil)
	require.NoError(t, err)
	require.Equal(t, "y:1", r.events(1)[0].Click.Data)
	r.until("health is fine again", func() bool { return r.a.Health().Inbound })
}

// Buttons of others, and invokes that we know nothing of, reach no core.
func TestInvoke_Unknown(t *testing.T) {
	r := start(t, teamstest.Options{Attempts: 1}, nil)
	for i, with := range []map[string]any{
		{"name": "task/fetch"},
		{"name": "adaptiveCard/action", "value": map[string]any{"action": map[string]any{"verb": "x", "data": map[string]string{"other": "1"}}}},
		{"name": "adaptiveCard/action", "value": "x"},
		{"name": "adaptiveCard/action", "value": map[string]any{"action": map[string]any{"data": map[string]string{"herald": string(make([]byte, 65))}}}},
	} {
		with["type"], with["id"] = "invoke", "f:"+string(rune('a'+i))
		r.push(r.dm, with)
	}
	r.until("all are offered", func() bool { return len(r.fake.Deliveries()) >= 4 })
	require.Equal(t, http.StatusNotImplemented, r.fake.Deliveries()[0].Status)
	for _, d := range r.fake.Deliveries()[1:] {
		require.Contains(t, string(d.Body), `"statusCode":400`)
	}
	require.Empty(t, r.sink.Offered())
}

// A press of the older kind comes as a message with a value.
func TestPress_Submit(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	r.push(r.group, map[string]any{"type": "message", "id": "77", "replyToId": "55", "value": map[string]string{"herald": "y:1"}})
	e := r.events(1)[0]
	require.Equal(t, &platforms.Click{MessageID: "55", Data: "y:1"}, e.Click)
	require.True(t, e.Addressed)
}

// #36848: who pressed is passed on as it is; the core decides.
func TestPress_ByAnotherPerson(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	kim := r.fake.AddUser("Kim Li")
	asked := r.mustSend(platforms.Outgoing{Address: r.atGroup(), Text: text("May I?"), Buttons: yesNo})
	_, err := r.fake.Press(r.group.ID, string(asked.Message), "Yes", kim, nil)
	require.NoError(t, err)
	require.Equal(t, platforms.UserID(kim.AAD), r.events(1)[0].Sender.ID)
}

// Stopping does not wait for a press that waits for its word.
func TestPress_StopIsPrompt(t *testing.T) {
	r := start(t, teamstest.Options{}, func(o *Options) { o.ClickWait = time.Minute })
	asked := r.mustSend(platforms.Outgoing{Address: r.atDM(), Text: text("May I?"), Buttons: yesNo})
	id, err := r.fake.Press(r.dm.ID, string(asked.Message), "Yes", teamstest.User{}, nil)
	require.NoError(t, err)
	r.events(1)
	begun := time.Now()
	require.NoError(t, r.stop())
	require.Less(t, time.Since(begun), 5*time.Second)
	require.Equal(t, noWord, r.invocation(id).Text)
}

func TestCard_Rows(t *testing.T) {
	require.Nil(t, cardOf("x", nil))
	require.Nil(t, cardOf("x", [][]platforms.Button{{}}))
	var row []platforms.Button
	for range 2*maxActions + 1 {
		row = append(row, platforms.Button{Label: "x", Data: "y"})
	}
	c := cardOf("", [][]platforms.Button{row}).Content.(card)
	require.Len(t, c.Body, 3)
	require.Equal(t, "1.4", c.Version)
	require.Equal(t, "Action.Execute", c.Body[0].Actions[0].Type)
}

// Teams has no message of a text with a card beside it: the text stands on the card, code in an element of its own.
func TestCard_HoldsTheText(t *testing.T) {
	code := "ls | grep *x*\n\nrm _y_"
	for text, want := range map[string][]element{
		"":             nil,
		"May I?\n- a":  {{Type: "TextBlock", Text: "May I?\n- a", Wrap: true}},
		"a ``` b":      {{Type: "TextBlock", Text: "a ``` b", Wrap: true}},
		"```\n```":     nil,
		"```\nunended": {{Type: "RichTextBlock", Inlines: []textRun{{Type: "TextRun", Text: "unended", Font: "Monospace"}}}},
		"Run\n```sh\n" + code + "\n```\nnow?": {
			{Type: "TextBlock", Text: "Run", Wrap: true},
			{Type: "RichTextBlock", Inlines: []textRun{{Type: "TextRun", Text: code, Font: "Monospace"}}},
			{Type: "TextBlock", Text: "now?", Wrap: true},
		},
	} {
		require.Equal(t, want, textOnCard(text), text)
	}
}

// A question with buttons is one message with an id through all its edits, and pictures come after it.
func TestSend_ButtonsAreOneMessage(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	picture := filepath.Join(t.TempDir(), "a.png")
	require.NoError(t, os.WriteFile(picture, []byte("pixels"), 0o600))
	asked := r.mustSend(platforms.Outgoing{Address: r.atDM(), Text: text("May I?"), Buttons: yesNo,
		Attachments: []platforms.Attachment{{Kind: platforms.Image, Name: "a.png", Path: picture}}})
	require.NotEmpty(t, asked.Message)
	require.Len(t, asked.More, 1)
	for _, words := range []string{"May I now?", "And now?"} {
		r.mustSend(platforms.Outgoing{Address: r.atDM(), Edit: asked.Message, Text: text(words), Buttons: yesNo})
		seen := r.fake.Visible(r.dm.ID)
		require.Len(t, seen, 2)
		require.Equal(t, words, seen[0].CardText)
		require.Len(t, seen[0].Buttons, 2)
		require.Equal(t, "a.png", seen[1].Files[0].Name)
	}
	r.mustSend(platforms.Outgoing{Address: r.atDM(), Edit: asked.Message, Text: text("Allowed.")})
	seen := r.fake.Visible(r.dm.ID)
	require.Equal(t, "Allowed.", seen[0].Text)
	require.Empty(t, seen[0].Cards)
}
