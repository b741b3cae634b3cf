package main

import (
	"strings"
	"sync/atomic"
	"time"

	"herald/gateway/model/modeltest"
)

// mostEchoed bounds how many questions one answer names, so that a merged turn stays one short message.
const mostEchoed = 10

// brain is a model that takes no time, or a fixed one: it answers every question since its last answer, so
// that messages which the daemon merged into one turn all get their reply.
type brain struct {
	delay atomic.Int64 // nanoseconds before the answer begins
	calls atomic.Int64
}

// script returns the brain as a model server's script.
func (b *brain) script() *modeltest.Script { return modeltest.Answering(b.answer).Quiet() }

func (b *brain) answer(r modeltest.Request) modeltest.Reply {
	b.calls.Add(1)
	var open []string
	for i := len(r.Messages) - 1; i >= 0; i-- {
		m := r.Messages[i]
		if m.Role == "assistant" && len(open) > 0 {
			break
		}
		if m.Role == "user" {
			open = append(open, m.Text)
		}
	}
	tokens := tokensOf(strings.Join(open, " "))
	tokens = tokens[max(0, len(tokens)-mostEchoed):]
	reply := modeltest.Text("This answers " + strings.Join(tokens, " ") + " in some twenty plain words, which stream one by one, as a model with nothing to think about would say them.")
	reply.Delay = time.Duration(b.delay.Load())
	return reply
}
