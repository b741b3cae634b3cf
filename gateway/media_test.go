package gateway_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/gateway/delivery"
	"herald/gateway/model/modeltest"
	"herald/platforms"
)

// files returns the names of what was sent to a place.
func (s *stage) files() (names []string) {
	for _, c := range s.calls() {
		for _, a := range c.Attachments {
			names = append(names, a.Name)
		}
	}
	return names
}

// A file that does not go out is told to the people at once and to the model with its next turn, on every way that an
// answer can take.
func TestMedia_WhatIsNotSentIsSaid(t *testing.T) {
	var answer atomic.Value
	script := modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		last := r.LastUser()
		switch _, done := r.ToolResult(); {
		case done:
			return modeltest.Text("after the tool")
		case strings.HasSuffix(last, "files"):
			return modeltest.Text(answer.Load().(string))
		case strings.HasSuffix(last, "between"):
			reply := modeltest.Calls("c1", "terminal", `{"command":"true"}`)
			reply.Text = answer.Load().(string)
			return reply
		}
		return modeltest.Text("re: " + last[strings.LastIndex(last, "\n")+1:])
	})
	s := newStage("slack")
	s.send = func(out platforms.Outgoing) error {
		if len(out.Attachments) > 0 && out.Attachments[0].Size > 1000 {
			return &platforms.SendError{Kind: platforms.TooLong, Err: errors.New("large.bin has 1001 bytes, this room takes at most 1000")}
		}
		return nil
	}
	h := start(t, script, s.on, func(h *house) { h.set["display.interim_assistant_messages"] = "true" })
	good, large := filepath.Join(h.home, "workspace", "good.txt"), filepath.Join(h.home, "workspace", "large.bin")
	h.until("the workspace is there", func() bool { return os.WriteFile(good, []byte("x"), 0o600) == nil })
	require.NoError(t, os.WriteFile(large, bytes.Repeat([]byte("x"), 1001), 0o600))
	answer.Store("Here.\nMEDIA:" + good + "\nMEDIA:" + large + "\nMEDIA:/nowhere/gone.txt\nMEDIA:" + filepath.Join(h.home, "herald.db"))
	dm := s.place("D1", "")
	for i, way := range []string{"files", "between"} {
		n := len(s.files())
		s.give(h, s.message(dm, platforms.DM, way))
		s.await(h, dm, "large.bin")
		h.until("all is said", func() bool { return strings.Count(strings.Join(s.texts(dm), "\n"), "herald.db") == i+1 })
		h.until("the good one is sent", func() bool { return len(s.files()) == n+1 })
		require.Equal(t, "good.txt", s.files()[n])
		all := strings.Join(s.texts(dm), "\n")
		require.Contains(t, all, "this room takes at most 1000")
		require.Contains(t, all, "there is no such file")
		require.Contains(t, all, "protected")
		require.NotContains(t, all, "MEDIA:")
		require.NotContains(t, all, h.home)
		if way == "between" {
			s.await(h, dm, "after the tool")
		}
		s.give(h, s.message(dm, platforms.DM, way+", and now?"))
		s.await(h, dm, way+", and now?")
		requests := h.llm.Requests()
		told := string(requests[len(requests)-1].Body)
		require.Equal(t, i+1, strings.Count(told, "Herald did not send these files of yours"), "the model knows")
		require.Equal(t, i+1, strings.Count(told, "The platform did not take all of your message"))
		require.Contains(t, told, "large.bin")
	}
}

func TestMedia_WhereThePlatformCarriesNone(t *testing.T) {
	s := newStage("slack")
	s.traits.Attachments = false
	file := filepath.Join(t.TempDir(), "a.txt")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	h := start(t, modeltest.Answering(func(modeltest.Request) modeltest.Reply { return modeltest.Text("MEDIA:" + file) }), s.on)
	dm := s.place("D1", "")
	s.give(h, s.message(dm, platforms.DM, "hello"))
	require.Contains(t, s.await(h, dm, "a.txt"), "slack can't carry files")
	require.Empty(t, s.files())
}

// The command line hears of what was left out, by our own rules and by the platform's.
func TestMedia_SendTellsItsCaller(t *testing.T) {
	s := newStage("slack")
	h := start(t, echo(), s.on)
	s.give(h, s.message(s.place("C1", ""), platforms.DM, "hello"))
	s.await(h, s.place("C1", ""), "re: hello")
	file := filepath.Join(t.TempDir(), "report.txt")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	var reply delivery.Sent
	require.NoError(t, h.ask("send", delivery.SendArgs{Target: "slack:C1", Text: "Today:\nMEDIA:/nowhere/gone.txt", Files: []string{file}}, &reply))
	require.Equal(t, "sent", reply.State)
	require.Equal(t, []string{"gone.txt: there is no such file"}, reply.Refused)
	require.Equal(t, []string{"report.txt"}, s.files())
	require.Contains(t, s.texts(s.place("C1", "")), "Today:")

	err := h.ask("send", delivery.SendArgs{Target: "slack:C1", Files: []string{filepath.Join(h.home, "herald.db")}}, &reply)
	require.ErrorContains(t, err, "nothing was sent: herald.db: this file is protected")
	require.ErrorContains(t, h.ask("send", delivery.SendArgs{Target: "slack:C1", Text: " \n"}, &reply), "the text is empty")

	s.mu.Lock()
	s.notes = []string{"report.txt was over the workspace's limit"}
	s.mu.Unlock()
	reply = delivery.Sent{}
	require.NoError(t, h.ask("send", delivery.SendArgs{Target: "slack:C1", Text: "Again", Files: []string{file}}, &reply))
	require.Equal(t, "sent", reply.State)
	require.Equal(t, "report.txt was over the workspace's limit", reply.Error)
	s.await(h, s.place("C1", ""), "over the workspace's limit")
	s.give(h, s.message(s.place("C1", ""), platforms.DM, "and?"))
	s.await(h, s.place("C1", ""), "and?")
	require.Contains(t, string(h.llm.Requests()[len(h.llm.Requests())-1].Body), "sent the file report.txt", "an answer to it is understood")
}

// What the platform left out of an answer is told to the model too.
func TestMedia_NotesOfThePlatformReachTheModel(t *testing.T) {
	s := newStage("slack")
	s.notes = []string{"a.txt was refused by the workspace"}
	file := filepath.Join(t.TempDir(), "a.txt")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	h := start(t, modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if strings.HasSuffix(r.LastUser(), "file") {
			return modeltest.Text("Here. MEDIA:" + file)
		}
		return modeltest.Text("fine")
	}), s.on)
	dm := s.place("D1", "")
	s.give(h, s.message(dm, platforms.DM, "the file"))
	s.await(h, dm, "refused by the workspace")
	s.give(h, s.message(dm, platforms.DM, "and?"))
	s.await(h, dm, "fine")
	require.Contains(t, string(h.llm.Requests()[1].Body), "a.txt was refused by the workspace")
}

// An adapter that believes a lie about a file's size, or does not care, fills no disk.
func TestMedia_InboundIsCutWhileItStreams(t *testing.T) {
	for name, careless := range map[string]bool{"an adapter that stops at the error": false, "one that does not": true} {
		t.Run(name, func(t *testing.T) {
			s := newStage("slack")
			var took atomic.Int64
			s.fetch = func(_ int64, w io.Writer) error {
				block := bytes.Repeat([]byte("x"), 1024)
				for range 64 {
					n, err := w.Write(block)
					took.Add(int64(n))
					if err != nil && !careless {
						return err
					}
				}
				return nil
			}
			h := start(t, echo(), s.on, func(h *house) { h.set["gateway.max_inbound_media_bytes"] = "4096" })
			dm := s.place("D1", "")
			e := s.message(dm, platforms.DM, "look")
			e.Message.Attachments = []platforms.Attachment{{Kind: platforms.Document, Name: "small.bin", Size: 10, Ref: "r"}}
			s.give(h, e)
			s.await(h, dm, "small.bin")
			s.await(h, dm, "re: look")
			require.LessOrEqual(t, took.Load(), int64(4096))
			require.Contains(t, strings.Join(s.texts(dm), "\n"), "more than 4096 bytes")
			require.Contains(t, h.llm.Requests()[0].LastUser(), "could not be fetched: it has more than 4096 bytes")
			left, err := filepath.Glob(filepath.Join(h.home, "media", "in", "*"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}
