package wire

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"herald/platforms"
)

// While nothing is visible an error is the message's; afterwards it is a note, and the message counts as sent.
func TestParts_Failed(t *testing.T) {
	refusal := &platforms.SendError{Kind: platforms.Forbidden, Err: errors.New("kicked")}
	var lines bytes.Buffer
	log := zerolog.New(&lines)
	p := Parts{Platform: "Testing", Log: &log, Chat: "c1"}
	file := platforms.Attachment{Path: "/tmp/../secret/a.txt"}
	require.ErrorIs(t, p.Failed(refusal, file), refusal)
	require.Empty(t, p.Receipt.Notes)
	require.Empty(t, lines.String())

	p.Sent("m1")
	require.NoError(t, p.Failed(nil, file))
	for _, c := range []struct {
		err  error
		note string
	}{
		{refusal, "a.txt was not sent: Testing refused it: forbidden."},
		{&platforms.SendError{Kind: platforms.RateLimited, RetryAfter: 1400 * time.Millisecond}, "a.txt was not sent: Testing asks to wait 1s."},
		{&platforms.SendError{Kind: platforms.TooLong}, "a.txt was not sent: Testing finds it too large."},
		{&platforms.SendError{Kind: platforms.Transient}, "a.txt was not sent: Testing could not be reached."},
		{errors.New("reset"), "a.txt was not sent: the connection broke, it may have arrived all the same."},
	} {
		require.NoError(t, p.Failed(c.err, file))
		require.Equal(t, c.note, p.Receipt.Notes[len(p.Receipt.Notes)-1])
	}
	require.Len(t, p.Receipt.Notes, 5)
	require.Contains(t, lines.String(), `"chat":"c1"`)

	p.Sent("m2")
	p.Sent("")
	require.Equal(t, platforms.MessageID("m1"), p.Receipt.Message)
	require.Equal(t, []platforms.MessageID{"m2"}, p.Receipt.More)

	nameless := Parts{}
	nameless.Sent("")
	nameless.Sent("m2")
	require.Empty(t, nameless.Receipt.Message, "the first part stays the message")
	require.Equal(t, []platforms.MessageID{"m2"}, nameless.Receipt.More)
}

func TestParts_Files(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, size int) platforms.Attachment {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, make([]byte, size), 0o600))
		return platforms.Attachment{Path: path, Size: 999}
	}
	list := []platforms.Attachment{
		write("empty.txt", 0), write("one.txt", 1), {Path: filepath.Join(dir, "gone"), Name: "../gone.txt"}, {Path: dir, Name: "dir"}, {Name: "nowhere"},
		write("most.txt", 1<<20), write("more.txt", 1<<20+1),
	}
	p := Parts{Platform: "Testing"}
	files := p.Files(list, 1, 1<<20)
	require.Len(t, files, 2)
	require.Equal(t, "one.txt", files[0].Name)
	require.EqualValues(t, 1, files[0].Size)
	require.Equal(t, "most.txt", files[1].Name)
	require.Equal(t, []platforms.Attachment{list[1], list[5]}, Attachments(files))
	require.Equal(t, []string{
		"empty.txt was not sent: the file is empty, which Testing refuses.", "gone.txt was not sent: the file does not exist.",
		"dir was not sent: it is no readable file.", "nowhere was not sent: the file does not exist.",
		"more.txt was not sent: it has 1.0 MB, Testing takes at most 1.0 MB.",
	}, p.Receipt.Notes)
	require.Len(t, p.Files(list[:1], 0, 1), 1, "where empty files are taken")
}

func TestCheckButtons(t *testing.T) {
	button := func(label, data string) [][]platforms.Button {
		return [][]platforms.Button{{{Label: "fine", Data: "x"}}, {{Label: label, Data: data}}}
	}
	long := strings.Repeat("d", ButtonData)
	require.NoError(t, CheckButtons(nil))
	require.NoError(t, CheckButtons(button("yes", long)))
	for _, bad := range [][][]platforms.Button{button(" ", "x"), button("yes", ""), button("yes", long+"d")} {
		require.Equal(t, platforms.BadRequest, platforms.AsSendError(CheckButtons(bad)).Kind)
	}
	require.ErrorContains(t, CheckButtons(button("yes", "")), `"yes" has 0 bytes`)
}

func TestWakeWords(t *testing.T) {
	var lines bytes.Buffer
	words := NewWakeWords([]string{`\bherald\b`, "(", "^hey bot"}, zerolog.New(&lines))
	require.Len(t, words, 2)
	require.Contains(t, lines.String(), "mention_patterns")
	for text, want := range map[string]bool{"ask HERALD, please": true, "heralds": false, "Hey Bot": true, "oh hey bot": false, "": false} {
		require.Equal(t, want, words.In(text), text)
	}
	require.False(t, WakeWords(nil).In("herald"))
}

func TestCopyFile(t *testing.T) {
	var got bytes.Buffer
	require.NoError(t, CopyFile(&got, strings.NewReader("four"), 4))
	require.Equal(t, "four", got.String())
	err := CopyFile(&got, strings.NewReader("fives"), 4)
	require.Equal(t, platforms.TooLong, platforms.AsSendError(err).Kind)
	require.ErrorIs(t, CopyFile(&got, failing{}, 4), errFailing)
}
