package gateway_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/cron"
	"herald/gateway/jobs/desk"
	"herald/gateway/model/modeltest"
	"herald/platforms/platformtest/telegramtest"
)

// scheduler calls the cronjob tool with the arguments that a message holds, and says what came of it.
func scheduler() *modeltest.Script {
	var n atomic.Int64
	return modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if result, ok := r.ToolResult(); ok {
			return modeltest.Text("result: " + result)
		}
		if _, args, ok := strings.Cut(r.LastUser(), "cronjob "); ok {
			return modeltest.Calls(fmt.Sprintf("c%d", n.Add(1)), "cronjob", args)
		}
		return modeltest.Text("re: " + r.LastUser())
	})
}

// jobs are all jobs of the house.
func (h *house) jobs() []cron.Job {
	h.t.Helper()
	list, err := h.gateway.Book().List(context.Background())
	require.NoError(h.t, err)
	return list
}

// replied says something and returns what a chat is answered.
func (h *house) replied(chat int64, text string) string {
	h.t.Helper()
	before := len(h.texts(chat))
	h.tg.Say(chat, text)
	h.until(fmt.Sprintf("chat %d is answered", chat), func() bool { return len(h.texts(chat)) > before })
	return h.texts(chat)[before]
}

// P6: a job of somebody else is not there, for the tool as for /cron; an admin by name sees all of them, alone.
func TestCronFront_WhoSeesWhat(t *testing.T) {
	h := build(t, scheduler())
	h.env = append(h.env, "HERALD_TELEGRAM_ALLOW_ADMIN_FROM=9", "HERALD_TELEGRAM_GROUP_ALLOW_ADMIN_FROM=9", "HERALD_TELEGRAM_USER_ALLOWED_COMMANDS=cron")
	h.set["display.tool_progress"] = "off"
	h.run()
	require.Contains(t, h.replied(7, `/cron add every hour water the roses --yes`), "is made: every hour.")
	h.tg.Say(8, `cronjob {"action":"create","schedule":"every day at 9","prompt":"feed the cat"}`)
	h.await(8, "is made: every day at 9:00")
	h.job(cron.Change{Name: ptr("ours"), Prompt: ptr("of the operator")})
	require.Len(t, h.jobs(), 3)
	roses := h.jobs()[0]

	list := h.replied(8, "/cron")
	require.Contains(t, list, "feed the cat")
	require.NotContains(t, list, "roses")
	require.NotContains(t, list, "ours")
	require.Contains(t, h.replied(8, "/cron remove "+string(roses.ID)), "There is no job")
	require.Contains(t, h.replied(8, "/cron history "+string(roses.ID)), "There is no job")
	for _, action := range []string{"remove", "pause", "run", "update"} {
		h.tg.Say(8, `cronjob {"action":"`+action+`","job_id":"`+string(roses.ID)+`","prompt":"mine now"}`)
		h.until(action+" is refused", func() bool {
			texts := h.texts(8)
			return strings.Contains(texts[len(texts)-1], "there is no job") && strings.Contains(strings.Join(texts, "\n"), string(roses.ID))
		})
		require.NotContains(t, h.replied(8, "/cron"), "roses")
	}
	require.Len(t, h.jobs(), 3)

	list = h.replied(9, "/cron")
	for _, name := range []string{"water the roses", "feed the cat", "ours"} {
		require.Contains(t, list, name, "an admin by name sees all")
	}
	h.tg.Write(telegramtest.Post{Chat: team, From: telegramtest.User{ID: 9, FirstName: "P9"}, Text: "/cron"})
	h.until("the room is answered", func() bool { return len(h.texts(team)) > 0 })
	require.NotContains(t, strings.Join(h.texts(team), "\n"), "roses", "what people have asked for alone is told to no room")
	require.Contains(t, h.replied(9, "/cron pause water the roses"), "is paused")
}

// Where nobody is named an admin everybody may use every command, and still sees the own jobs alone.
func TestCronFront_NobodyIsNamed(t *testing.T) {
	h := start(t, scheduler())
	require.Contains(t, h.replied(7, `/cron add every hour water the roses --yes`), "is made")
	require.Contains(t, h.replied(8, "/cron"), "There are no jobs here.")
}

// The question before a job is made, with the real buttons.
func TestCronFront_Confirm(t *testing.T) {
	h := start(t, scheduler())
	h.tg.Say(7, "/cron add in 20 minutes remind me of the tea")
	var asked telegramtest.Message
	h.until("it asks", func() bool {
		for _, m := range h.tg.Visible(7) {
			if m.Bot && strings.Contains(m.Text, "Shall I do this once on ") && len(m.Buttons) > 0 {
				asked = m
				return true
			}
		}
		return false
	})
	require.Contains(t, asked.Text, "Next time (")
	require.Empty(t, h.jobs())
	h.press(7, asked, 0, 8)
	require.Empty(t, h.jobs(), "somebody else's press makes nothing")
	h.press(7, asked, 0, 7)
	h.await(7, "is made: once on ")
	h.press(7, asked, 0, 7)
	require.Len(t, h.jobs(), 1)
	task, err := h.jobs()[0].Plan.ReadTask()
	require.NoError(t, err)
	require.Equal(t, "remind me of the tea", task.Prompt)
	require.Equal(t, "7", string(task.Origin.Address.Chat))
}

// A run has the tool only where that is allowed, and what it makes belongs to the chat of its job.
func TestCronFront_JobsOfARun(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		t.Run(fmt.Sprint("allowed ", allowed), func(t *testing.T) {
			h := build(t, scheduler())
			h.set["cron.allow_agent_scheduling"] = fmt.Sprint(allowed)
			h.run()
			h.tg.Say(7, `cronjob {"action":"create","schedule":"every day at 9","name":"parent","prompt":"cronjob {\"action\":\"create\",\"schedule\":\"1h\",\"name\":\"child\",\"prompt\":\"hello\"}"}`)
			h.await(7, "is made: every day at 9:00")
			h.ran(h.jobs()[0].ID)
			managed := h.job(cron.Change{Name: ptr("of nobody"), Prompt: ptr(`cronjob {"action":"create","schedule":"2h","name":"orphan","prompt":"hello","deliver":"origin"}`)})
			h.ran(managed.ID)
			names := map[string]cron.Task{}
			for _, j := range h.jobs() {
				task, err := j.Plan.ReadTask()
				require.NoError(t, err)
				names[j.Name] = task
			}
			if !allowed {
				require.Len(t, names, 2)
				return
			}
			require.Equal(t, "7", string(names["child"].Origin.Address.Chat))
			require.Equal(t, "origin", names["child"].Deliver)
			require.Nil(t, names["orphan"].Origin)
			require.Equal(t, "local", names["orphan"].Deliver)
		})
	}
}

// The control verb changes only what is asked for, and skills against those that are there.
func TestCronFront_Verb(t *testing.T) {
	h := start(t, scheduler())
	ask := func(a desk.Args) (r desk.Reply, err error) {
		err = h.ask("cron", a, &r)
		return r, err
	}
	h.until("the control socket answers", func() bool { return h.ask("identify", nil, &struct{}{}) == nil })
	h.skill("weather")
	h.skill("news")
	r, err := ask(desk.Args{Action: "add", Phrase: "every day at 8 tell me", Change: cron.Change{Skills: ptr([]string{"weather"}), Attach: ptr(true)}})
	require.NoError(t, err)
	id := string(r.Jobs[0].ID)
	r, err = ask(desk.Args{Action: "edit", Job: id, AddSkills: []string{"news"}, RemoveSkills: []string{"Weather"}})
	require.NoError(t, err)
	require.Equal(t, []string{"news"}, r.Jobs[0].Task.Skills)
	require.Equal(t, true, *r.Jobs[0].Task.Attach)
	r, err = ask(desk.Args{Action: "edit", Job: id, Unattach: true})
	require.NoError(t, err)
	require.Nil(t, r.Jobs[0].Task.Attach)
	_, err = ask(desk.Args{Action: "explode", Job: id})
	require.ErrorContains(t, err, "want one of list, add, edit")
	_, err = ask(desk.Args{Action: "explode", Job: "ghost"})
	require.ErrorContains(t, err, "there is no job")
	h.until("the scheduler looks for due jobs", func() bool {
		r, err = ask(desk.Args{Action: "status"})
		require.NoError(t, err)
		return r.Status.Alive && !r.Status.LastLook.IsZero()
	})
}

// skill puts a skill into the home.
func (h *house) skill(name string) {
	h.t.Helper()
	dir := filepath.Join(h.home, "skills", name)
	require.NoError(h.t, os.MkdirAll(dir, 0o700))
	require.NoError(h.t, os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("Read it."), 0o600))
}
