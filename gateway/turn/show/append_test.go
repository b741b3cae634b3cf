package show_test

import (
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/gateway/gatewaytest"
	"herald/gateway/model/modeltest"
	"herald/platforms"
)

// A surface that can only append gets previews that each begin with the one before, without a cursor, whatever
// markup the answer is written in; the final text completes the message as everywhere.
func TestAppendOnly_PreviewsOnlyGrow(t *testing.T) {
	answer := "Here is **what I have found out** so far, with `some code` in it and [a link](https://example.com/a_(b)) too.\n\n" +
		"```go\nfunc main() {\n\tprintln(\"hello\")\n}\n```\n\n- one *item* here\n- another one with **bold words**\n\n" +
		"| name | value |\n|---|---|\n| a | 1 |\n| a longer name | 22 |\n\nAnd that is the end of it, with a few more words to come, so that it takes a while."
	for _, dialect := range []platforms.Dialect{platforms.Plain, platforms.SlackMrkdwn, platforms.Markdown} {
		t.Run(string(dialect), func(t *testing.T) {
			reply := modeltest.Text(answer)
			reply.Pace = 4 * time.Millisecond
			s := gatewaytest.NewStage("slack")
			s.Own.Edit, s.Own.AppendOnly, s.Own.Text.Dialect = true, true, dialect
			var shown platforms.Text
			var frames, refused, finals atomic.Int32
			s.OnSend = func(out platforms.Outgoing) error {
				if !out.Interim {
					finals.Add(1)
					return nil
				}
				if !strings.HasPrefix(out.Text.Body, shown.Body) || !strings.HasPrefix(out.Text.Markdown, shown.Markdown) ||
					strings.Contains(out.Text.Body, "▉") {
					refused.Add(1)
					return &platforms.SendError{Kind: platforms.BadRequest, Err: errors.New("only appending")}
				}
				shown = out.Text
				frames.Add(1)
				return nil
			}
			script := modeltest.Answering(func(modeltest.Request) modeltest.Reply { return reply })
			h := gatewaytest.Start(t, script, s.On, func(h *gatewaytest.House) {
				h.Set["streaming.edit_interval"] = "50ms"
				h.Set["streaming.buffer_threshold"] = "1"
			})
			dm := s.Place("D1", "")
			s.Give(h, s.Message(dm, platforms.DM, "go"))
			h.Until("the answer is there", func() bool { return finals.Load() == 1 })
			require.Zero(t, refused.Load())
			require.Greater(t, frames.Load(), int32(3))
			require.Len(t, s.Texts(dm), 1, "one message")
			require.Contains(t, s.Texts(dm)[0], "takes a while")
		})
	}
}
