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
	"herald/gateway/gatewaytest"
	"herald/gateway/model/modeltest"
	"herald/platforms"
)

// files returns the names of what was sent to a place.
func files(s *gatewaytest.Stage) (names []string) {
	for _, c := range s.Calls() {
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
	s := gatewaytest.NewStage("slack")
	s.OnSend = func(out platforms.Outgoing) error {
		if len(out.Attachments) > 0 && out.Attachments[0].Size > 1000 {
			return &platforms.SendError{Kind: platforms.TooLong, Err: errors.New("large.bin has 1001 bytes, this room takes at most 1000")}
		}
		return nil
	}
	h := gatewaytest.Start(t, script, s.On, func(h *gatewaytest.House) { h.Set["display.interim_assistant_messages"] = "true" })
	good, large := filepath.Join(h.Home, "workspace", "good.txt"), filepath.Join(h.Home, "workspace", "large.bin")
	h.Until("the workspace is there", func() bool { return os.WriteFile(good, []byte("x"), 0o600) == nil })
	require.NoError(t, os.WriteFile(large, bytes.Repeat([]byte("x"), 1001), 0o600))
	answer.Store("Here.\nMEDIA:" + good + "\nMEDIA:" + large + "\nMEDIA:/nowhere/gone.txt\nMEDIA:" + filepath.Join(h.Home, "herald.db"))
	dm := s.Place("D1", "")
	for i, way := range []string{"files", "between"} {
		n := len(files(s))
		s.Give(h, s.Message(dm, platforms.DM, way))
		s.Await(h, dm, "large.bin")
		h.Until("all is said", func() bool { return strings.Count(strings.Join(s.Texts(dm), "\n"), "herald.db") == i+1 })
		h.Until("the good one is sent", func() bool { return len(files(s)) == n+1 })
		require.Equal(t, "good.txt", files(s)[n])
		all := strings.Join(s.Texts(dm), "\n")
		require.Contains(t, all, "this room takes at most 1000")
		require.Contains(t, all, "there is no such file")
		require.Contains(t, all, "protected")
		require.NotContains(t, all, "MEDIA:")
		require.NotContains(t, all, h.Home)
		if way == "between" {
			s.Await(h, dm, "after the tool")
		}
		s.Give(h, s.Message(dm, platforms.DM, way+", and now?"))
		s.Await(h, dm, way+", and now?")
		requests := h.Model.Requests()
		told := string(requests[len(requests)-1].Body)
		require.Equal(t, i+1, strings.Count(told, "Herald did not send these files of yours"), "the model knows")
		require.Equal(t, i+1, strings.Count(told, "The platform did not take all of your message"))
		require.Contains(t, told, "large.bin")
	}
}

func TestMedia_WhereThePlatformCarriesNone(t *testing.T) {
	s := gatewaytest.NewStage("slack")
	s.Own.Attachments = false
	file := filepath.Join(t.TempDir(), "a.txt")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	h := gatewaytest.Start(t, modeltest.Answering(func(modeltest.Request) modeltest.Reply { return modeltest.Text("MEDIA:" + file) }), s.On)
	dm := s.Place("D1", "")
	s.Give(h, s.Message(dm, platforms.DM, "hello"))
	require.Contains(t, s.Await(h, dm, "a.txt"), "slack can't carry files")
	require.Empty(t, files(s))
}

// The command line hears of what was left out, by our own rules and by the platform's.
func TestMedia_SendTellsItsCaller(t *testing.T) {
	s := gatewaytest.NewStage("slack")
	h := gatewaytest.Start(t, gatewaytest.Echo(), s.On)
	s.Give(h, s.Message(s.Place("C1", ""), platforms.DM, "hello"))
	s.Await(h, s.Place("C1", ""), "re: hello")
	file := filepath.Join(t.TempDir(), "report.txt")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	var reply delivery.Sent
	args := delivery.SendArgs{Target: "slack:C1", Text: "Today:\nMEDIA:/nowhere/gone.txt", Files: []string{file}}
	require.NoError(t, h.Ask("send", args, &reply))
	require.Equal(t, "sent", reply.State)
	require.Equal(t, []string{"gone.txt: there is no such file"}, reply.Refused)
	require.Equal(t, []string{"report.txt"}, files(s))
	require.Contains(t, s.Texts(s.Place("C1", "")), "Today:")

	err := h.Ask("send", delivery.SendArgs{Target: "slack:C1", Files: []string{filepath.Join(h.Home, "herald.db")}}, &reply)
	require.ErrorContains(t, err, "nothing was sent: herald.db: this file is protected")
	require.ErrorContains(t, h.Ask("send", delivery.SendArgs{Target: "slack:C1", Text: " \n"}, &reply), "the text is empty")

	s.Note("report.txt was over the workspace's limit")
	reply = delivery.Sent{}
	require.NoError(t, h.Ask("send", delivery.SendArgs{Target: "slack:C1", Text: "Again", Files: []string{file}}, &reply))
	require.Equal(t, "sent", reply.State)
	require.Equal(t, "report.txt was over the workspace's limit", reply.Error)
	s.Await(h, s.Place("C1", ""), "over the workspace's limit")
	s.Give(h, s.Message(s.Place("C1", ""), platforms.DM, "and?"))
	s.Await(h, s.Place("C1", ""), "and?")
	requests := h.Model.Requests()
	require.Contains(t, string(requests[len(requests)-1].Body), "sent the file report.txt", "an answer to it is understood")
}

// What the platform left out of an answer is told to the model too.
func TestMedia_NotesOfThePlatformReachTheModel(t *testing.T) {
	s := gatewaytest.NewStage("slack")
	s.Note("a.txt was refused by the workspace")
	file := filepath.Join(t.TempDir(), "a.txt")
	require.NoError(t, os.WriteFile(file, []byte("x"), 0o600))
	h := gatewaytest.Start(t, modeltest.Answering(func(r modeltest.Request) modeltest.Reply {
		if strings.HasSuffix(r.LastUser(), "file") {
			return modeltest.Text("Here. MEDIA:" + file)
		}
		return modeltest.Text("fine")
	}), s.On)
	dm := s.Place("D1", "")
	s.Give(h, s.Message(dm, platforms.DM, "the file"))
	s.Await(h, dm, "refused by the workspace")
	s.Give(h, s.Message(dm, platforms.DM, "and?"))
	s.Await(h, dm, "fine")
	require.Contains(t, string(h.Model.Requests()[1].Body), "a.txt was refused by the workspace")
}

// An adapter that believes a lie about a file's size, or does not care, fills no disk.
func TestMedia_InboundIsCutWhileItStreams(t *testing.T) {
	for name, careless := range map[string]bool{"an adapter that stops at the error": false, "one that does not": true} {
		t.Run(name, func(t *testing.T) {
			s := gatewaytest.NewStage("slack")
			var took atomic.Int64
			s.OnFetch = func(_ int64, w io.Writer) error {
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
			h := gatewaytest.Start(t, gatewaytest.Echo(), s.On, func(h *gatewaytest.House) { h.Set["gateway.max_inbound_media_bytes"] = "4096" })
			dm := s.Place("D1", "")
			e := s.Message(dm, platforms.DM, "look")
			e.Message.Attachments = []platforms.Attachment{{Kind: platforms.Document, Name: "small.bin", Size: 10, Ref: "r"}}
			s.Give(h, e)
			s.Await(h, dm, "small.bin")
			s.Await(h, dm, "re: look")
			require.LessOrEqual(t, took.Load(), int64(4096))
			require.Contains(t, strings.Join(s.Texts(dm), "\n"), "more than 4096 bytes")
			require.Contains(t, h.Model.Requests()[0].LastUser(), "could not be fetched: it has more than 4096 bytes")
			left, err := filepath.Glob(filepath.Join(h.Home, "media", "in", "*"))
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}
