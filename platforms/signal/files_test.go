package signal

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"herald/platforms"
	"herald/platforms/platformtest/faults"
	"herald/platforms/platformtest/signaltest"
	"herald/platforms/wire"
)

func (r *running) file(name string, body []byte) string {
	path := filepath.Join(r.t.TempDir(), name)
	require.NoError(r.t, os.WriteFile(path, body, 0o600))
	return path
}

// Pictures go 32 at a time with the text, others one by one, captions with their file.
func TestAdapter_FilesOut(t *testing.T) {
	r := run(t, signaltest.Options{}, nil)
	var files []platforms.Attachment
	for i := range 40 {
		files = append(files, platforms.Attachment{Kind: platforms.Image, Path: r.file(fmt.Sprintf("p%02d.png", i), []byte("\x89PNG"))})
	}
	files = append(files, platforms.Attachment{Kind: platforms.Document, Name: "a;b,c=.txt", Path: r.file("x.txt", []byte("abc")), Caption: "see"},
		platforms.Attachment{Kind: platforms.Video, Name: "v.mp4", Path: r.file("v.mp4", nil)},
		platforms.Attachment{Kind: platforms.Document, Name: "dir", Path: t.TempDir()})
	receipt, err := r.send(platforms.Outgoing{Address: r.at(ann), Text: text("forty"), Attachments: files})
	require.NoError(t, err)
	require.Equal(t, []string{"dir was not sent: it is no readable file."}, receipt.Notes)
	got := r.fake.Visible(ann)
	require.Len(t, got, 4)
	require.Len(t, got[0].Files, 32)
	require.Equal(t, "forty", got[0].Text)
	require.Len(t, got[1].Files, 8)
	require.Equal(t, "see", got[2].Text)
	require.Equal(t, []signaltest.File{{Name: "a_b_c_.txt", MIME: "text/plain", Body: []byte("abc")}}, got[2].Files)
	require.Empty(t, got[3].Files[0].Body)
}

// What is larger than 8 MiB goes by its path when the daemon is on this machine, and inside the request when the daemon
// can't read it.
func TestAdapter_LargeFiles(t *testing.T) {
	r := run(t, signaltest.Options{}, nil)
	r.a.rpc.inline = 100_000
	body := bytes.Repeat([]byte("0123456789abcde\n"), 100_000/16+1)
	path := r.file("big.bin", body)
	out := platforms.Outgoing{Address: r.at(ann), Attachments: []platforms.Attachment{{Kind: platforms.Document, Name: "big.bin", Path: path}}}
	_, err := r.send(out)
	require.NoError(t, err)
	require.Equal(t, []any{path}, r.fake.Calls("send")[0].Params["attachments"])
	r.fake.HidePaths(true)
	_, err = r.send(out)
	require.NoError(t, err)
	got := r.fake.Visible(ann)
	require.Len(t, got, 2)
	require.True(t, bytes.Equal(body, got[1].Files[0].Body))
}

// A later part that fails is told, and the first is not sent again.
func TestAdapter_LaterPartFails(t *testing.T) {
	r := run(t, signaltest.Options{}, nil)
	files := []platforms.Attachment{{Kind: platforms.Document, Name: "a.txt", Path: r.file("a.txt", []byte("a"))},
		{Kind: platforms.Document, Name: "b.txt", Path: r.file("b.txt", []byte("b"))}}
	sends := 0
	r.fake.BeforeAnswer(func(method string) {
		if sends++; method == "send" && sends == 1 {
			r.fake.Break("send", faults.Fault{Kind: faults.ResetAfter})
		}
	})
	receipt, err := r.send(platforms.Outgoing{Address: r.at(ann), Text: text("two files"), Attachments: files})
	require.NoError(t, err)
	require.Equal(t, []string{"b.txt was not sent: the connection broke, it may have arrived all the same."}, receipt.Notes)
	require.Len(t, r.fake.Visible(ann), 2)
}

// A later part that was certainly not sent, for the rate or for the network, is tried once more.
func TestAdapter_LaterPartIsTriedOnceMore(t *testing.T) {
	for _, trouble := range []func(r *running){
		func(r *running) { r.fake.Refuse(annID, "RATE_LIMIT_FAILURE/1") },
		func(r *running) { r.fake.Break("send", faults.Fault{Kind: faults.Status, Status: 404}) },
	} {
		r := run(t, signaltest.Options{}, nil)
		files := []platforms.Attachment{{Kind: platforms.Document, Name: "a.txt", Path: r.file("a.txt", []byte("a"))},
			{Kind: platforms.Document, Name: "b.txt", Path: r.file("b.txt", []byte("b"))}}
		sends := 0
		r.fake.BeforeAnswer(func(method string) {
			if method != "send" {
				return
			}
			switch sends++; sends {
			case 1:
				trouble(r)
			case 2:
				r.fake.Refuse(annID, "")
			}
		})
		receipt, err := r.send(platforms.Outgoing{Address: r.at(ann), Text: text("two files"), Attachments: files})
		require.NoError(t, err)
		require.Empty(t, receipt.Notes)
		require.Len(t, r.fake.Visible(ann), 2)
	}
}

// Voice notes: the flag, a conversion where ffmpeg is there, the file as it is where it is not or fails.
func TestAdapter_VoiceNotesOut(t *testing.T) {
	convert := r755(t, "ffmpeg", `for last; do :; done; printf converted > "$last"`)
	fail := r755(t, "ffmpeg", `exit 1`)
	for _, c := range []struct{ ffmpeg, name, body string }{{convert, "note.m4a", "converted"}, {fail, "note.ogg", "OggS"}, {"-", "note.ogg", "OggS"}} {
		r := run(t, signaltest.Options{}, func(o *Options) { o.FFmpeg = c.ffmpeg })
		out := platforms.Outgoing{Address: r.at(ann), Text: text("listen"), Attachments: []platforms.Attachment{
			{Kind: platforms.Voice, Name: "note.ogg", MIME: "audio/ogg", Path: r.file("note.ogg", []byte("OggS"))}}}
		_, err := r.send(out)
		require.NoError(t, err)
		got := r.fake.Visible(ann)
		require.Len(t, got, 2, "the text is a message of its own: the flag holds for a whole message")
		require.Equal(t, "listen", got[0].Text)
		require.False(t, got[0].Voice)
		require.True(t, got[1].Voice)
		require.Equal(t, c.name, got[1].Files[0].Name)
		require.Equal(t, c.body, string(got[1].Files[0].Body))
	}
}

// r755 writes a program.
func r755(t *testing.T, name, script string) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+script+"\n"), 0o755))
	return path
}

// Files of people: kinds, names, bare AAC, stickers, and a daemon that answers with an error.
func TestAdapter_FilesIn(t *testing.T) {
	remux := r755(t, "ffmpeg", `for last; do :; done; printf m4a > "$last"`)
	adts := append([]byte{0xff, 0xf1}, bytes.Repeat([]byte("a"), 5000)...)
	for _, c := range []struct {
		ffmpeg string
		file   signaltest.File
		kind   platforms.AttachmentKind
		name   string
		want   string
	}{
		{"-", signaltest.File{Name: "../../etc/x.pdf", MIME: "application/pdf", Body: []byte("%PDF")}, platforms.Document, "x.pdf", "%PDF"},
		{"-", signaltest.File{Name: "a.jpg", MIME: "image/jpeg", Body: []byte("jpg")}, platforms.Image, "a.jpg", "jpg"},
		{"-", signaltest.File{Name: "a.mp4", MIME: "video/mp4", Body: nil}, platforms.Video, "a.mp4", ""},
		{"-", signaltest.File{Name: "song.mp3", MIME: "", Body: []byte("ID3")}, platforms.Audio, "song.mp3", "ID3"},
		{"-", signaltest.File{MIME: "audio/aac", Body: adts}, platforms.Voice, "voice.aac", string(adts)},
		{remux, signaltest.File{MIME: "audio/aac", Body: adts}, platforms.Voice, "voice.m4a", "m4a"},
		{remux, signaltest.File{MIME: "audio/aac", Body: []byte("\x00\x00\x00\x18ftypM4A ")}, platforms.Voice, "voice.m4a", "\x00\x00\x00\x18ftypM4A "},
	} {
		r := run(t, signaltest.Options{}, func(o *Options) { o.FFmpeg = c.ffmpeg })
		r.fake.Write(signaltest.Post{From: ann, Files: []signaltest.File{c.file}})
		at := r.messages(1)[0].Message.Attachments[0]
		require.Equal(t, c.kind, at.Kind, c.name)
		require.Equal(t, c.name, at.Name)
		var got bytes.Buffer
		require.NoError(t, r.a.Fetch(t.Context(), at, 1<<20, &got), c.name)
		require.Equal(t, c.want, got.String(), c.name)
	}
	r := run(t, signaltest.Options{}, nil)
	r.fake.Write(signaltest.Post{From: ann, Sticker: true})
	at := r.messages(1)[0].Message.Attachments[0]
	require.Equal(t, platforms.Sticker, at.Kind)
	var got bytes.Buffer
	require.NoError(t, r.a.Fetch(t.Context(), at, 1<<20, &got))
	require.Contains(t, got.String(), "WEBP")
	at.Ref = "gone"
	require.ErrorContains(t, r.a.Fetch(t.Context(), at, 1<<20, &got), "An error occurred reading attachment")
	at.Size = FileLimit + 1
	require.Equal(t, platforms.TooLong, platforms.AsSendError(r.a.Fetch(t.Context(), at, 1<<40, &got)).Kind)
}

func TestAdapter_IgnoresFilesWhenTold(t *testing.T) {
	r := run(t, signaltest.Options{}, func(o *Options) { o.IgnoreAttachments = true })
	r.fake.Write(signaltest.Post{From: ann, Text: "look", Files: []signaltest.File{{Name: "a.txt", Body: []byte("x")}}})
	require.Empty(t, r.messages(1)[0].Message.Attachments)
}

// The bytes of a file in each form that daemons answer.
func TestFileData(t *testing.T) {
	body := bytes.Repeat([]byte("data and \"result\" "), 10_000)
	text := base64.StdEncoding.EncodeToString(body)
	for _, answer := range []string{
		`{"jsonrpc":"2.0","result":{"data":"` + text + `"},"id":"1"}`,
		`{"jsonrpc":"2.0","id":"1","result" : "` + strings.ReplaceAll(text, "/", `\/`) + `"}`,
	} {
		r, err := fileData("getAttachment", strings.NewReader(answer))
		require.NoError(t, err)
		var got bytes.Buffer
		require.NoError(t, wire.CopyFile(&got, r, 1<<20))
		require.True(t, bytes.Equal(body, got.Bytes()))
	}
	for _, answer := range []string{"", "{", "<html>", `{"jsonrpc":"2.0","result":{},"id":1}`, `{"jsonrpc":"2.0","error":{"code":-1,"message":"no","data":"x"},"id":1}`} {
		_, err := fileData("getAttachment", strings.NewReader(answer))
		require.Error(t, err, answer)
	}
	r, err := fileData("getAttachment", strings.NewReader(`{"result":"`+text[:100]))
	require.NoError(t, err)
	require.Error(t, wire.CopyFile(&bytes.Buffer{}, r, 1<<20), "half an answer is no file")
}
