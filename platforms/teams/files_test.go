package teams

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/fetch"
	"herald/platforms/platformtest/faults"
	"herald/platforms/platformtest/teamstest"
	"herald/platforms/wire"
)

// offer sends a file of a size to the person and returns its card.
func (r *run) offer(name string, size int) (teamstest.Message, []byte) {
	r.t.Helper()
	body := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
	path := filepath.Join(r.t.TempDir(), name)
	require.NoError(r.t, os.WriteFile(path, body, 0o600))
	r.mustSend(platforms.Outgoing{Address: r.atDM(), Attachments: []platforms.Attachment{{Kind: platforms.Document, Name: name, Path: path,
		Caption: "as asked"}}})
	require.NoError(r.t, os.Remove(path)) // what waits is a copy
	seen := r.fake.Visible(r.dm.ID)
	card := seen[len(seen)-1]
	require.True(r.t, card.Files[0].Awaiting)
	return card, body
}

func (r *run) answer(card teamstest.Message, accept bool) {
	r.t.Helper()
	id, err := r.fake.AnswerConsent(r.dm.ID, card.ID, accept)
	require.NoError(r.t, err)
	r.until("the answer is answered", func() bool { i, _ := r.fake.Invocation(id); return i.Done })
	i, _ := r.fake.Invocation(id)
	require.Empty(r.t, i.Err)
}

// waiting returns the names in the folder of files that wait.
func (r *run) waiting() []string {
	entries, err := os.ReadDir(r.media)
	require.NoError(r.t, err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// A file goes up in chunks once the person accepts it, also after a restart, and takes the place of its card.
func TestConsent_Accepted(t *testing.T) {
	for name, size := range map[string]int{"small": 100, "one chunk": uploadChunk, "chunks": 2*uploadChunk + 12345} {
		t.Run(name, func(t *testing.T) {
			r := start(t, teamstest.Options{}, nil)
			card, body := r.offer("report.pdf", size)
			r.restart()
			r.answer(card, true)
			r.until("the file is there", func() bool {
				seen := r.fake.Visible(r.dm.ID)
				return len(seen) == 1 && len(seen[0].Files) == 1 && seen[0].Files[0].URL != ""
			})
			got := r.fake.Visible(r.dm.ID)[0].Files[0]
			require.Equal(t, "report.pdf", got.Name)
			require.True(t, bytes.Equal(body, got.Body))
			require.Empty(t, r.waiting())
			require.Empty(t, r.fake.Leaks(), "the upload address is good by itself: no token goes there")
			require.Empty(t, r.sink.Offered())
		})
	}
}

// A declined file says so in the place of its card, and is thrown away.
func TestConsent_Declined(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	card, _ := r.offer("a_b.pdf", 100)
	r.answer(card, false)
	r.until("the card says so", func() bool { return r.fake.Visible(r.dm.ID)[0].Text == `a\_b.pdf was not sent: you declined it.` })
	require.Empty(t, r.waiting())
	facts, err := r.memory.Recall(t.Context(), consentSpace)
	require.NoError(t, err)
	require.Empty(t, facts)
}

// An upload that fails for good is told in the place of the card.
func TestConsent_UploadFails(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	card, _ := r.offer("report.pdf", 100)
	r.fake.Break(teamstest.Fault{Kind: faults.Status, Status: 500, On: teamstest.Upload, Times: -1})
	r.answer(card, true)
	r.until("the card says so", func() bool {
		return r.fake.Visible(r.dm.ID)[0].Text == "report.pdf could not be sent: the upload to OneDrive failed."
	})
	require.Empty(t, r.waiting())
}

// Troubles that pass hurt neither the upload nor the card that shows it, and there is one card.
func TestConsent_UploadInTrouble(t *testing.T) {
	for _, size := range []int{100, uploadChunk + 100} {
		for _, kind := range []faults.Kind{faults.Status, faults.ResetBefore, faults.ResetAfter} {
			t.Run(fmt.Sprint(kind, size), func(t *testing.T) {
				r := start(t, teamstest.Options{}, nil)
				card, body := r.offer("report.pdf", size)
				r.fake.Break(teamstest.Fault{Kind: kind, On: teamstest.Upload})
				r.fake.Break(teamstest.Fault{Kind: faults.Status, Status: 429, On: teamstest.Send, RetryAfter: 100 * time.Millisecond})
				r.answer(card, true)
				r.until("the file is there", func() bool {
					seen := r.fake.Visible(r.dm.ID)
					return len(seen) == 1 && len(seen[0].Files) == 1 && seen[0].Files[0].URL != ""
				})
				require.True(t, bytes.Equal(body, r.fake.Visible(r.dm.ID)[0].Files[0].Body))
				require.Empty(t, r.fake.Violations())
			})
		}
	}
}

// SSRF: an upload address inside the operator's network is refused.
func TestConsent_UploadInside(t *testing.T) {
	r := start(t, teamstest.Options{}, func(o *Options) { o.Fetch = fetch.Options{} })
	card, _ := r.offer("report.pdf", 100)
	r.answer(card, true)
	r.until("the card says so", func() bool { return r.fake.Visible(r.dm.ID)[0].Text != "" })
	require.Zero(t, r.fake.Calls(teamstest.Upload))
}

// A consent that is not ours, or of another chat, uploads nothing.
func TestConsent_Foreign(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	card, _ := r.offer("report.pdf", 100)
	id := r.waiting()[0]
	for i, with := range []map[string]any{
		{"conversation": map[string]any{"id": "a:other", "conversationType": "personal", "tenantId": r.fake.TenantID()}, "value": map[string]any{"action": "accept", "context": map[string]string{"herald": id}, "uploadInfo": map[string]string{"uploadUrl": r.fake.URLs().Base + "/sharepoint/upload/x"}}},
		{"value": map[string]any{"action": "accept", "context": map[string]string{"herald": "../../etc/passwd"}}, "replyToId": card.ID},
		{"value": "nonsense"},
	} {
		with["type"], with["name"], with["id"] = "invoke", "fileConsent/invoke", "f:"+string(rune('a'+i))
		r.push(r.dm, with)
	}
	r.until("the card says that it is gone", func() bool { return r.fake.Visible(r.dm.ID)[0].Text == "This file is not available any more." })
	require.Zero(t, r.fake.Calls(teamstest.Upload))
	require.Len(t, r.waiting(), 1)
}

// Files that nobody takes are thrown away after their time, and there are never too many.
func TestConsent_Bounds(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	for range maxConsents + 3 {
		r.offer("x.bin", 16)
	}
	require.Len(t, r.waiting(), maxConsents)
	require.NoError(t, r.stop())
	clock := &laterClock{by: DefaultConsentKept + time.Hour}
	r.alter = func(o *Options) { o.Clock = clock }
	a := r.adapter(t)
	require.NoError(t, a.consents.sweep(t.Context()))
	require.Empty(t, r.waiting())
	a.moves.CloseIdleConnections()
}

// laterClock is ahead of the system's.
type laterClock struct {
	wire.System
	by time.Duration
}

func (c *laterClock) Now() time.Time { return time.Now().Add(c.by) }

// PR #61002: pictures behind the connector need the bot's token, and files beside the text none.
func TestFetch_PicturesAndFiles(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	picture, file := []byte("\x89PNG picture"), []byte("a file")
	r.fake.Write(teamstest.Post{Room: r.dm.ID, Text: "look", Files: []teamstest.File{
		{Name: "photo.png", MIME: "image/png", Body: picture, Inline: true}, {Name: "a b.txt", MIME: "text/plain", Body: file},
	}})
	got := r.events(1)[0].Message
	require.Equal(t, "look", got.Text)
	require.Len(t, got.Attachments, 2)
	require.Equal(t, platforms.Image, got.Attachments[0].Kind)
	require.Equal(t, "image-1.png", got.Attachments[0].Name)
	require.Equal(t, "a b.txt", got.Attachments[1].Name)
	require.Equal(t, "text/plain", got.Attachments[1].MIME)
	r.fake.RevokeTokens()
	for i, want := range [][]byte{picture, file} {
		var buf bytes.Buffer
		require.NoError(t, r.a.Fetch(t.Context(), got.Attachments[i], 1<<20, &buf))
		require.Equal(t, want, buf.Bytes())
	}
	require.Empty(t, r.fake.Leaks())
}

// The token goes to service hosts only, whatever an attachment says.
func TestFetch_NoTokenElsewhere(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	r.push(r.dm, map[string]any{"type": "message", "id": "1", "text": "x", "attachments": []any{
		map[string]string{"contentType": "image/png", "contentUrl": "http://localhost:1/steal"},
		map[string]string{"contentType": "image/png", "contentUrl": "https://u:p@smba.trafficmanager.net/"},
	}})
	for _, at := range r.events(1)[0].Message.Attachments {
		var r2 ref
		require.NoError(t, jsonUnmarshal(at.Ref, &r2))
		require.False(t, r.a.isService(r2.URL))
		require.ErrorContains(t, r.a.Fetch(t.Context(), at, 100, &bytes.Buffer{}), "may not be fetched")
	}
}

// Files of channels and groups come by Graph where it is set up, with their names, from the right message.
func TestFetch_ByGraph(t *testing.T) {
	r := start(t, teamstest.Options{}, func(o *Options) { o.Graph = true })
	for i, p := range []teamstest.Post{
		{Room: r.group.ID, Text: "group", Mention: true}, {Room: r.channel.ID, Thread: r.root, Text: "thread", Mention: true}, {Room: r.channel.ID, Text: "root", Mention: true},
	} {
		p.Files = []teamstest.File{{Name: "report.txt", MIME: "text/plain", Body: []byte(p.Text)}}
		r.fake.Write(p)
		got := r.events(i + 1)[i].Message
		require.Equal(t, p.Text, got.Text)
		require.Len(t, got.Attachments, 1)
		require.Equal(t, "report.txt", got.Attachments[0].Name)
		var buf bytes.Buffer
		require.NoError(t, r.a.Fetch(t.Context(), got.Attachments[0], 100, &buf))
		require.Equal(t, p.Text, buf.String())
	}
	require.Empty(t, r.fake.Leaks())
}

// Without Graph the message says that a file is missing (P7).
func TestFetch_WithoutGraph(t *testing.T) {
	r := start(t, teamstest.Options{}, nil)
	r.fake.Write(teamstest.Post{Room: r.group.ID, Text: "look", Mention: true,
		Files: []teamstest.File{{Name: "a.txt", Body: []byte("x")}, {Name: "b.txt", Body: []byte("x")}}})
	got := r.events(1)[0].Message
	require.Empty(t, got.Attachments)
	require.Contains(t, got.Text, "look\n\n[2 files came with this message")
}

// An address that has expired is asked for again by Graph.
func TestFetch_ExpiredAddress(t *testing.T) {
	for _, graph := range []bool{false, true} {
		r := start(t, teamstest.Options{}, func(o *Options) { o.Graph = graph })
		r.fake.Write(teamstest.Post{Room: r.dm.ID, Files: []teamstest.File{{Name: "a.txt", Body: []byte("x")}}})
		at := r.events(1)[0].Message.Attachments[0]
		r.fake.Break(teamstest.Fault{Kind: faults.Status, Status: 401, On: teamstest.Download})
		var buf bytes.Buffer
		err := r.a.Fetch(t.Context(), at, 100, &buf)
		require.Equal(t, graph, err == nil, "%v", err)
		require.NoError(t, r.stop())
	}
}
