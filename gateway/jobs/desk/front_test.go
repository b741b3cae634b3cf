package desk_test

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
	"herald/gateway/gatewaytest"
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

// jobsOf are all jobs of the house.
func jobsOf(h *gatewaytest.House) []cron.Job {
	h.T.Helper()
	list, err := h.Gateway.Scheduled().Book.List(context.Background())
	require.NoError(h.T, err)
	return list
}

// replied says something and returns what a chat is answered.
func replied(h *gatewaytest.House, chat int64, text string) string {
	h.T.Helper()
	before := len(h.Texts(chat))
	h.Telegram.Say(chat, text)
	h.Until(fmt.Sprintf("chat %d is answered", chat), func() bool { return len(h.Texts(chat)) > before })
	return h.Texts(chat)[before]
}

// P6: a job of somebody else is not there, for the tool as for /cron; an admin by name sees all of them, alone.
func TestCronFront_WhoSeesWhat(t *testing.T) {
	h := gatewaytest.Build(t, scheduler())
	h.Env = append(h.Env, "HERALD_TELEGRAM_ALLOW_ADMIN_FROM=9", "HERALD_TELEGRAM_GROUP_ALLOW_ADMIN_FROM=9",
		"HERALD_TELEGRAM_USER_ALLOWED_COMMANDS=cron")
	h.Set["display.tool_progress"] = "off"
	h.Run()
	require.Contains(t, replied(h, 7, `/cron add every hour water the roses --yes`), "is made: every hour.")
	h.Telegram.Say(8, `cronjob {"action":"create","schedule":"every day at 9","prompt":"feed the cat"}`)
	h.Await(8, "is made: every day at 9:00")
	h.Job(cron.Change{Name: new("ours"), Prompt: new("of the operator")})
	require.Len(t, jobsOf(h), 3)
	roses := jobsOf(h)[0]

	list := replied(h, 8, "/cron")
	require.Contains(t, list, "feed the cat")
	require.NotContains(t, list, "roses")
	require.NotContains(t, list, "ours")
	require.Contains(t, replied(h, 8, "/cron remove "+string(roses.ID)), "There is no job")
	require.Contains(t, replied(h, 8, "/cron history "+string(roses.ID)), "There is no job")
	for _, action := range []string{"remove", "pause", "run", "update"} {
		h.Telegram.Say(8, `cronjob {"action":"`+action+`","job_id":"`+string(roses.ID)+`","prompt":"mine now"}`)
		h.Until(action+" is refused", func() bool {
			texts := h.Texts(8)
			return strings.Contains(texts[len(texts)-1], "there is no job") && strings.Contains(strings.Join(texts, "\n"), string(roses.ID))
		})
		require.NotContains(t, replied(h, 8, "/cron"), "roses")
	}
	require.Len(t, jobsOf(h), 3)

	list = replied(h, 9, "/cron")
	for _, name := range []string{"water the roses", "feed the cat", "ours"} {
		require.Contains(t, list, name, "an admin by name sees all")
	}
	const team = -1007
	h.Telegram.Write(telegramtest.Post{Chat: team, From: telegramtest.User{ID: 9, FirstName: "P9"}, Text: "/cron"})
	h.Until("the room is answered", func() bool { return len(h.Texts(team)) > 0 })
	require.NotContains(t, strings.Join(h.Texts(team), "\n"), "roses", "what people have asked for alone is shown in no room")
	require.Contains(t, replied(h, 9, "/cron pause water the roses"), "is paused")
}

// Where nobody is named an admin everybody may use every command, and still sees the own jobs alone.
func TestCronFront_NobodyIsNamed(t *testing.T) {
	h := gatewaytest.Start(t, scheduler())
	require.Contains(t, replied(h, 7, `/cron add every hour water the roses --yes`), "is made")
	require.Contains(t, replied(h, 8, "/cron"), "There are no jobs here.")
}

// The question before a job is made, with the real buttons.
func TestCronFront_Confirm(t *testing.T) {
	h := gatewaytest.Start(t, scheduler())
	h.Telegram.Say(7, "/cron add in 20 minutes remind me of the tea")
	var asked telegramtest.Message
	h.Until("it asks", func() bool {
		for _, m := range h.Telegram.Visible(7) {
			if m.Bot && strings.Contains(m.Text, "Shall I do this once on ") && len(m.Buttons) > 0 {
				asked = m
				return true
			}
		}
		return false
	})
	require.Contains(t, asked.Text, "Next time (")
	require.Empty(t, jobsOf(h))
	h.Press(7, asked, 0, 8)
	require.Empty(t, jobsOf(h), "somebody else's press makes nothing")
	h.Press(7, asked, 0, 7)
	h.Await(7, "is made: once on ")
	h.Press(7, asked, 0, 7)
	require.Len(t, jobsOf(h), 1)
	task, err := jobsOf(h)[0].Plan.ReadTask()
	require.NoError(t, err)
	require.Equal(t, "remind me of the tea", task.Prompt)
	require.Equal(t, "7", string(task.Origin.Address.Chat))
}

// A run has the tool only where that is allowed, and what it makes belongs to the chat of its job.
func TestCronFront_JobsOfARun(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		t.Run(fmt.Sprint("allowed ", allowed), func(t *testing.T) {
			h := gatewaytest.Build(t, scheduler())
			h.Set["cron.allow_agent_scheduling"] = fmt.Sprint(allowed)
			h.Run()
			h.Telegram.Say(7, `cronjob {"action":"create","schedule":"every day at 9","name":"parent","prompt":"cronjob {\"action\":\"create\",\"schedule\":\"1h\",\"name\":\"child\",\"prompt\":\"hello\"}"}`)
			h.Await(7, "is made: every day at 9:00")
			h.Ran(jobsOf(h)[0].ID)
			managed := h.Job(cron.Change{Name: new("of nobody"),
				Prompt: new(`cronjob {"action":"create","schedule":"2h","name":"orphan","prompt":"hello","deliver":"origin"}`)})
			h.Ran(managed.ID)
			names := map[string]cron.Task{}
			for _, j := range jobsOf(h) {
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
	h := gatewaytest.Start(t, scheduler())
	ask := func(a desk.Args) (r desk.Reply, err error) {
		err = h.Ask("cron", a, &r)
		return r, err
	}
	h.Until("the control socket answers", func() bool { return h.Ask("identify", nil, &struct{}{}) == nil })
	writeSkill(h, "weather")
	writeSkill(h, "news")
	r, err := ask(desk.Args{Action: "add", Phrase: "every day at 8 tell me", Change: cron.Change{Skills: new([]string{"weather"}), Attach: new(true)}})
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
	h.Until("the scheduler looks for due jobs", func() bool {
		r, err = ask(desk.Args{Action: "status"})
		require.NoError(t, err)
		return r.Status.Alive && !r.Status.LastLook.IsZero()
	})
}

// writeSkill puts a skill into the home.
func writeSkill(h *gatewaytest.House, name string) {
	h.T.Helper()
	dir := filepath.Join(h.Home, "skills", name)
	require.NoError(h.T, os.MkdirAll(dir, 0o700))
	require.NoError(h.T, os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("Read it."), 0o600))
}
