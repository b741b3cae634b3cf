package teams

import (
	"net/http"
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
	require.Nil(t, cardOf(nil))
	require.Nil(t, cardOf([][]platforms.Button{{}}))
	var row []platforms.Button
	for range 2*maxActions + 1 {
		row = append(row, platforms.Button{Label: "x", Data: "y"})
	}
	c := cardOf([][]platforms.Button{row}).Content.(card)
	require.Len(t, c.Body, 3)
	require.Equal(t, "1.4", c.Version)
	require.Equal(t, "Action.Execute", c.Body[0].Actions[0].Type)
}
