//go:build failpoint

package crash

import (
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"herald/platforms/platformtest/telegramtest"
)

// The places of the scene. Each has people of its own who talk at the same time.
var (
	ada   = place{chat: 7}
	ben   = place{chat: 8}
	cleo  = place{chat: 9}
	dora  = place{chat: 10}
	forum = int64(-1001234500)
)

// scene is a stretch of life that passes every commit edge: plain answers, tools, streaming, corrections,
// steering, compaction, commands, buttons, a redelivered update, a retry-after, an accepted send whose answer
// is lost, herald send, the browser chat. It returns when everybody has seen the end of what they asked.
func (w *world) scene() {
	w.tg.AddChat(telegramtest.Chat{ID: forum, Type: "supergroup", Title: "Forum", IsForum: true})
	red := place{forum, w.tg.AddTopic(forum, "red")}
	blue := place{forum, w.tg.AddTopic(forum, "blue")}
	var people sync.WaitGroup
	people.Go(w.ada)
	people.Go(w.ben)
	people.Go(func() { w.group(red, blue) })
	people.Go(w.cleo)
	people.Go(w.dora)
	people.Go(func() {
		b := w.newBrowser("browser-chat-1")
		b.talk(plain)
		b.talk(tool)
	})
	people.Wait()
}

// ada talks, uses tools, sees a long answer grow and has a bad connection.
func (w *world) ada() {
	w.talk(ada, plain)
	w.tg.Replay(1) // whatever was confirmed last comes again
	w.talk(ada, tool)
	w.talk(ada, long)
	w.tg.Break(telegramtest.Fault{Method: "sendMessage", Chat: ada.chat, Trouble: telegramtest.ResetAfter})
	w.talk(ada, plain)
	w.tg.Replay(3)
	w.tg.Break(telegramtest.Fault{Method: "sendMessage", Chat: ada.chat, Trouble: telegramtest.AnswerStatus, Status: 429, RetryAfter: time.Second})
	w.talk(ada, batch)
	w.talk(ada, plain)
}

// ben corrects, steers, is refused, and uses commands.
func (w *world) ben() {
	w.talk(ben, plain)
	first := w.say(ben, slow)
	w.pause(150 * time.Millisecond)
	w.await(w.say(ben, plain)) // a correction while the model thinks
	w.await(first)
	work := w.say(ben, slowTool)
	w.pause(250 * time.Millisecond)
	refused := w.order(ben, "/title never mind %s", "can't run|never mind %s") // can't run while a turn does
	note := w.sayAs(ben, plain, "/steer %s use the blue one")
	w.await(work)
	w.await(note)
	w.await(refused)
	w.await(w.order(ben, "/title Plans %s", "Plans %s|can't run"))
	w.talk(ben, todo)
	w.await(w.order(ben, "/undo now", "undone|can't run"))
	w.answerQuestion(ben)
	w.await(w.order(ben, "/new Fresh %s now", "Fresh %s"))
	w.talk(ben, plain)
}

// answerQuestion lets the model ask back and presses a button; when the question does not arrive, the
// answer is written.
func (w *world) answerQuestion(at place) {
	a := w.say(at, ask)
	var buttons telegramtest.Message
	w.until("the question is shown", replyLimit, func() bool {
		for _, m := range w.shown(at) {
			if strings.Contains(m.Text, "Which colour for "+a.token) && len(m.Buttons) > 0 {
				buttons = m
				return true
			}
		}
		answered, excused := w.settled(a)
		return answered || excused
	})
	if answered, _ := w.settled(a); answered {
		return
	}
	if buttons.ID == 0 {
		w.tg.Say(at.chat, "blue")
	} else {
		w.tg.Press(at.chat, buttons.ID, buttons.Buttons[0][0].Data, telegramtest.User{})
	}
	w.until("the answered question leads to an answer", replyLimit, func() bool {
		answered, _ := w.settled(a)
		return answered || w.tg.Pending() == 0 && w.lost(a)
	})
}

// lost reports whether the answer itself, and not only the question, is in doubt.
func (w *world) lost(a *asked) bool {
	for _, m := range w.shown(a.place) {
		if m.ID > a.message && strings.Contains(m.Text, "I can't tell whether") {
			return true
		}
	}
	return false
}

// group talks in two topics of a forum at the same time; one of them is compacted.
func (w *world) group(red, blue place) {
	var people sync.WaitGroup
	people.Go(func() {
		for range 5 {
			w.talk(red, big)
		}
		w.talk(red, plain)
	})
	people.Go(func() {
		w.talk(blue, twoStep)
		w.talk(blue, plain)
	})
	people.Wait()
}

// cleo is written to by the operator, and answers.
func (w *world) cleo() {
	w.talk(cleo, plain)
	w.send(cleo, "a word from the operator")
	w.talk(cleo, plain)
}

// dora asks on while her first question is worked at: what waits gets turns of its own.
func (w *world) dora() {
	first := w.say(dora, slow)
	w.pause(150 * time.Millisecond)
	second, third := w.sayAs(dora, plain, "/queue %s"), w.sayAs(dora, plain, "/queue %s")
	w.await(first)
	w.await(second)
	w.await(third)
}

// send runs the verb. When the daemon dies under it, nobody repeats it: there is one copy at most.
func (w *world) send(at place, text string) {
	var out []byte
	var err error
	w.until("the daemon takes the operator's message", replyLimit, func() bool {
		cmd := exec.Command(binary, "send", "telegram:"+itoa(at.chat), text)
		cmd.Env = w.env
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		out, err = cmd.CombinedOutput()
		return err == nil || !strings.Contains(string(out), "no daemon") && !strings.Contains(string(out), "connect")
	})
	w.note("herald send: %v %s", err, out)
	copies := 0
	for _, m := range w.shown(at) {
		if strings.Contains(m.Text, text) && !strings.Contains(m.Text, repeated) {
			copies++
		}
	}
	if copies > 1 || err == nil && strings.HasPrefix(string(out), "sent") && copies == 0 {
		w.fail("P4: %d copies of the operator's message; herald send said %v %s", copies, err, out)
	}
}
